/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map publisher: code maps, and the records of their images. Only the service thread calls this, and the thread that
 * starts it before.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/libc/fork_lock.h"
#include "agent/service/service_state.h"
#include "frozen/signal/slot.h"
#include "os/clock.h"
#include "stream/record.h"

#define RENEW_MIN_NS 20000000u        /* the map, unless a walk met unknown code, once it was another one; */
#define RENEW_MAX_NS 4000000000u      /* where it stays the same, so long */
#define RENEW_SHARE 400               /* ... and so many times what reading it takes, at the least */

/* --- images --- */

static bool write_image(struct sf_service *service, const struct sf_image *image)
{
	struct sf_stream_image record = {
		.number = image->number,
		.build_id_size = (uint32_t)image->build_id_size,
		.inode = image->inode,
		.device = image->device,
		.path_size = (uint16_t)(strlen(image->path) + (image->deleted ? 10 : 0)),
		.note_size = (uint16_t)strlen(image->note),
	};
	const struct sf_outbox_piece pieces[] = {
		{ (const char *)&record + sizeof(record.header),
		  sizeof(record) - sizeof(record.header) },
		{ image->path, strlen(image->path) },
		{ " (deleted)", image->deleted ? 10 : 0 },
		{ image->note, record.note_size },
	};

	memcpy(record.build_id, image->build_id, image->build_id_size);
	return sf_stream_writer_put(service, SF_STREAM_IMAGE, pieces, 4);
}

/*
 * Before the map that names them is published. False: the reader makes no room; they are not written.
 */
static bool write_images(struct sf_service *service)
{
	for (; service->n_written < sf_images_count(service->images); service->n_written++) {
		struct sf_image *image = sf_images_get(service->images, service->n_written + 1);

		sf_image_close(image);
		if (!write_image(service, image))
			return false;
	}
	return true;
}

/* --- maps --- */

/*
 * Publishes the new map by one store. A walk that began before the store goes on with the old map, so
 * the old map is freed later.
 */
static void publish(struct sf_service *service, struct sf_code_map *old)
{
	struct sf_kept_map retired = { old, 0 };

	atomic_store(&sf_handler.code.map, service->process.map);
	retired.n_quiet = atomic_load(&service->agent->n_quiet);
	if (old)
		sf_vec_push(&service->retired, retired); /* there is room: renew() */
	if (sf_kept_stills_any(sf_handler.link.kept))
		sf_wake_up_post(&sf_handler.link.wake_up);
}

static bool renew(struct sf_service *service, struct sf_error *err)
{
	const struct sf_code_map *before = service->process.map;
	struct sf_code_map *old; /* not freed: walks may be using it */
	const bool ok = sf_process_refresh_beside(&service->process, service->images, &old, err);

	sf_image_tables_close_cache();
	if (!ok)
		return false;
	if (service->process.map == before)
		return true;
	if (sf_vec_reserve(&service->retired, service->retired.n + 1) && write_images(service)) {
		publish(service, old);
		return true;
	}
	free(service->process.map);
	service->process.map = old;
	return true;
}

static bool is_used(const struct sf_code_map *map)
{
	for (uint32_t i = 0; i < sf_handler.link.n_slots; i++) {
		if (atomic_load(&sf_handler.link.slots[i].map) == map)
			return true;
	}
	return false;
}

static bool has_runtime(const struct sf_code_map *map, const struct sf_runtime *runtime)
{
	bool has = false;

	for (size_t i = 0; map && i < map->n_runtimes; i++)
		has |= map->runtimes[i] == runtime;
	return has;
}

/* Whether a map that a walk may be using has this object. */
static bool has_any_map(void *arg, const struct sf_runtime *runtime)
{
	const struct sf_service *service = arg;
	bool has = has_runtime(service->process.map, runtime);

	for (size_t i = 0; i < service->retired.n; i++)
		has |= has_runtime(service->retired.items[i].map, runtime);
	return has;
}

static void free_retired(struct sf_service *service)
{
	uint64_t n_quiet = atomic_load(&service->agent->n_quiet);
	size_t n = 0;

	for (size_t i = 0; i < service->retired.n; i++) {
		struct sf_kept_map retired = service->retired.items[i];

		if (n_quiet - retired.n_quiet < 2 || is_used(retired.map))
			service->retired.items[n++] = retired;
		else
			free(retired.map);
	}
	service->retired.n = n;
	sf_runtimes_release(&service->runtimes.all, has_any_map, service);
}

static uint64_t longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Events of a runtime come in no steady stream that would meet its code as soon as it is there: where they are sampled,
 * the map is out of date until there is a runtime.
 */
static bool is_stale(const struct sf_service *service)
{
	if (service->agent->options.event && !sf_runtimes_any(&service->runtimes.all))
		return true;
	return atomic_load_explicit(&sf_handler.code.map_stale, memory_order_relaxed) != 0;
}

static uint64_t wanted_pause_ns(const struct sf_service *service)
{
	return service->renew || is_stale(service) ? 0 : service->renew_pause_ns;
}

/* When the map is to be renewed. */
static uint64_t due_ns(const struct sf_service *service, uint64_t now_ns)
{
	const uint64_t pause_ns = sf_process_refresh_pause_ns(&service->process, now_ns);

	if (service->urgent)
		return now_ns;
	return service->process.refreshed_ns + longer(pause_ns, wanted_pause_ns(service));
}

static void say_whether_complete(struct sf_service *service)
{
	atomic_store(&service->incomplete, service->missing.n > 0 || service->renew);
}

/* Of a map that is new. */
static uint64_t first_pause_ns(const struct sf_service *service)
{
	return earlier(longer(RENEW_MIN_NS, service->process.refresh_cost_ns * RENEW_SHARE), RENEW_MAX_NS);
}

/* A map that stays the same is looked at more and more seldom. */
static void renew_now(struct sf_service *service)
{
	const struct sf_code_map *before = service->process.map;
	/* First: code that is met while the map is read is looked for again. */
	const bool stale = is_stale(service);

	atomic_store(&sf_handler.code.map_stale, 0);
	if (stale)
		sf_runtime_publisher_refresh(service, true);
	service->renew = service->urgent = false;
	renew(service, NULL);
	atomic_fetch_add(&sf_handler.code.n_searches, 1);
	if (service->process.map != before)
		service->renew_pause_ns = first_pause_ns(service);
	else if (!stale)
		service->renew_pause_ns = earlier(2 * service->renew_pause_ns, RENEW_MAX_NS);
}

static uint64_t take_turn(struct sf_service *service, uint64_t now_ns)
{
	if (atomic_load_explicit(&sf_handler.code.map_stale, memory_order_relaxed) == SF_MAP_MISLEADS)
		service->process.same_pause_ns = 0; /* it will be another one */
	if (now_ns >= sf_image_tables_due_ns(service, now_ns))
		sf_image_tables_look(service, now_ns);
	if (now_ns >= due_ns(service, now_ns))
		renew_now(service);
	sf_runtime_publisher_look(service);
	if (service->retired.n)
		free_retired(service);
	say_whether_complete(service);
	return earlier(due_ns(service, now_ns), sf_image_tables_due_ns(service, now_ns));
}

/* While a thread of the program forks, nothing changes: the child goes on with what it has then. */
uint64_t sf_map_publisher_turn(struct sf_service *service, uint64_t now_ns)
{
	pthread_mutex_t *lock = &sf_fork_mutexes[SF_FORK_IMAGES];
	uint64_t due;

	if (pthread_mutex_trylock(lock) != 0)
		return now_ns;
	due = take_turn(service, now_ns);
	pthread_mutex_unlock(lock);
	return due;
}

bool sf_map_publisher_init(struct sf_service *service, struct sf_error *err)
{
	bool ok;

	if (!sf_image_tables_init(service))
		return sf_fail_memory(err);
	sf_process_init(&service->process, service->pid);
	ok = renew(service, err);
	/* A virtual machine that runs already is in the map before the first sample. */
	if (ok)
		sf_runtime_publisher_look(service);
	if (ok && service->urgent)
		ok = renew(service, err);
	service->renew = service->urgent = false;
	service->renew_pause_ns = first_pause_ns(service);
	sf_image_tables_build_no_more();
	say_whether_complete(service);
	if (!ok)
		sf_map_publisher_deinit(service);
	return ok;
}

void sf_map_publisher_deinit(struct sf_service *service)
{
	atomic_store(&sf_handler.code.map, NULL);
	for (size_t i = 0; i < service->retired.n; i++)
		free(service->retired.items[i].map);
	sf_runtime_publisher_deinit(service);
	sf_vec_deinit(&service->retired);
	sf_vec_deinit(&service->missing);
	sf_process_deinit(&service->process);
	sf_images_destroy(service->images);
	service->images = NULL;
}
