/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The images of the agent's code maps and their unwind tables. Only the service thread calls this, and the thread that starts
 * it before. A file is open only while it is read, because its descriptor may be in the program's table.
 *
 * A table that the disk cache does not have: with a stillframe at the other end, the IMAGE record
 * makes that one build it, and we look again for a while. Without one, or when it takes too long,
 * or where that one's cache is not ours (it is in another container, below another root, another user's, or
 * there is no folder for one), it is built here, between two other things that the service thread does.
 *
 * A forked child that starts anew goes on with its parent's images: it has the same files mapped. For a program of 200 libraries
 * that saves a tenth of a second, which the child would have to wait for.
 */
#include <string.h>

#include "agent/agent.h"
#include "agent/service/service_state.h"
#include "os/clock.h"
#include "unwind/cache.h"
#include "unwind/unwind.h"

#define YOUNG_NS 1000000000u
#define FIRST_BUILD_NS 1000000000u    /* the start of the program waits at most so long for tables */
#define RETRY_NS 100000000u
#define YOUNG_RETRY_NS 10000000u
#define PATIENCE_NS 3000000000u       /* for a stillframe that builds tables */

/* For load() below, which gets nothing but an image: there is one service thread. */
static struct {
	struct sf_service *service;
	uint64_t build_until_ns;      /* tables are built here until then; 0: not at all */
	struct sf_cache cache;        /* open while images are loaded, if there is one ... */
	bool looked_for_cache;        /* `cache` says whether there is one */
} loading;

/* At the first image. */
static struct sf_cache *open_cache(void)
{
	if (!loading.looked_for_cache)
		sf_cache_open(&loading.cache, true);
	loading.looked_for_cache = true;
	return loading.cache.folder >= 0 ? &loading.cache : NULL;
}

void sf_image_tables_close_cache(void)
{
	if (loading.looked_for_cache)
		sf_cache_close(&loading.cache);
	loading.looked_for_cache = false;
}

static bool get_cached(struct sf_image *image, const struct sf_kept_miss *miss)
{
	struct sf_cache *cache = miss->has_key ? open_cache() : NULL;
	struct sf_table table;
	size_t size;
	void *block;

	if (!cache || !sf_cache_get(cache, &miss->key, &block, &size))
		return false;
	if (!sf_table_init(&table, block, size)) {
		sf_unwind_close(block, size);
		return false;
	}
	sf_image_unload_table(image);
	image->table = table;
	image->table_block = block;
	image->table_size = size;
	return true;
}

/* A table that is built is in anonymous memory: what the cache has of it then is in the cache's file. */
static void build(struct sf_image *image, const struct sf_kept_miss *miss)
{
	sf_image_load_table(image);
	if (image->table_block)
		get_cached(image, miss);
}

/* The key is made while the file is open: it is looked for again when the file is closed. */
static void load(struct sf_image *image)
{
	struct sf_kept_miss miss = { .image = image->number, .since_ns = sf_now_ns() };

	miss.has_key = !image->from_memory && sf_unwind_key(image->fd, &miss.key);
	if (get_cached(image, &miss))
		return;
	/* The vDSO cannot be opened later and is not in the cache: its table is built now. */
	if (image->from_memory || miss.since_ns < loading.build_until_ns)
		build(image, &miss);
	else
		sf_vec_push(&loading.service->missing, miss);
}

static const struct sf_image_loader loader = {
	.load = load, .unload = sf_image_unload_table, .serial = true,
};

/* By its path; another file that stands there now is not taken. */
static void build_anew(struct sf_image *image, const struct sf_kept_miss *miss)
{
	const struct sf_mapping mapping = { .path = image->path, .inode = image->inode,
					    .device = image->device };

	image->fd = sf_process_open_mapping(loading.service->pid, &mapping);
	if (image->fd < 0)
		return;
	build(image, miss);
	sf_image_close(image);
}

/* Whether what a stillframe at the other end puts into its cache appears in ours. */
static bool shares_cache(const struct sf_service *service)
{
	const char *theirs = service->agent->options.cache;
	char ours[SF_CACHE_ID];

	return service->channel.fd >= 0 && theirs && sf_cache_id(ours) && strcmp(theirs, ours) == 0;
}

/* Builds at most one table per turn, because other work of the service thread waits meanwhile. */
void sf_image_tables_look(struct sf_service *service, uint64_t now_ns)
{
	uint64_t patience_ns = shares_cache(service) ? PATIENCE_NS : 0;
	bool built = false;
	size_t n = 0;

	for (size_t i = 0; i < service->missing.n; i++) {
		struct sf_kept_miss miss = service->missing.items[i];
		struct sf_image *image = sf_images_get(service->images, miss.image);

		if (!get_cached(image, &miss)) {
			if (built || now_ns - miss.since_ns < patience_ns) {
				service->missing.items[n++] = miss;
				continue;
			}
			build_anew(image, &miss);
			built = true;
		}
		service->renew |= image->table.header != NULL;
	}
	sf_image_tables_close_cache();
	service->missing.n = n;
	/* In a file's stream the rest is built without a pause. */
	service->missing_tried_ns = built ? 0 : now_ns;
}

uint64_t sf_image_tables_due_ns(const struct sf_service *service, uint64_t now_ns)
{
	const bool young = now_ns - service->started_ns < YOUNG_NS;

	if (!service->missing.n)
		return UINT64_MAX;
	return service->missing_tried_ns + (young ? YOUNG_RETRY_NS : RETRY_NS);
}

bool sf_image_tables_init(struct sf_service *service)
{
	loading.service = service;
	loading.looked_for_cache = false; /* in a child: what is open is the parent's */
	loading.build_until_ns = shares_cache(service) ? 0 : sf_now_ns() + FIRST_BUILD_NS;
	service->images = service->inherited;
	service->inherited = NULL;
	if (!service->images || !sf_images_forked(service->images))
		service->images = sf_images_create(&loader);
	return service->images;
}

void sf_image_tables_build_no_more(void)
{
	loading.build_until_ns = 0;
}
