/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of the images that the watched processes map.
 *
 * Two mappings are of one image when device, inode and path agree, unless the file was written to in between, or is on a volume
 * that shares its numbers with others: containers on btrfs have other files with the same three. Mappings without
 * a file (the vDSO) are one per session, as all processes share it.
 */
#include "target/images.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/vec.h"

/* Tables stay in memory. chromium's table takes some 30 MB, most take less than 2. */
#define MAX_TABLES ((uint64_t)96 << 20)
#define MAX_LOADERS 8
#define MAX_PATH 4096
#define MAX_CODE 256 /* executable segments of one file */
#define MAX_KEY (MAX_PATH + 128)

struct sf_images {
	struct sf_image_loader loader;
	struct sf_intern *keys;             /* number of the key = number of the image */
	SF_VEC(struct sf_image *) all;
	uint32_t n_loaded;                  /* images below this have been given to the loader */
	_Atomic uint32_t next_to_load;
	struct sf_work work;
	struct sf_image *own_vdso;          /* once it has been asked for */
	struct sf_image_files files;
	_Atomic uint64_t table_bytes;       /* of all images */
};

struct sf_images *sf_images_create(const struct sf_image_loader *loader)
{
	struct sf_images *images = calloc(1, sizeof(*images));

	if (!images)
		return NULL;
	images->loader = *loader;
	sf_work_init(&images->work);
	images->files.work = &images->work;
	images->keys = sf_intern_create();
	if (!images->keys) {
		sf_work_deinit(&images->work);
		free(images);
		return NULL;
	}
	return images;
}

static void free_image(struct sf_image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	free(image->path);
	free(image->code);
	free(image);
}

static void destroy_image(struct sf_images *images, struct sf_image *image)
{
	images->loader.unload(image);
	free_image(image);
}

void sf_images_destroy(struct sf_images *images)
{
	if (!images)
		return;
	for (size_t i = 0; i < images->all.n; i++)
		destroy_image(images, images->all.items[i]);
	sf_vec_deinit(&images->all);
	sf_intern_destroy(images->keys);
	sf_work_deinit(&images->work);
	free(images);
}

bool sf_images_forked(struct sf_images *images)
{
	for (size_t i = 0; i < images->all.n; i++)
		images->all.items[i]->fd = -1;
	return images->n_loaded == images->all.n;
}

void sf_images_stop_on(struct sf_images *images, const atomic_bool *stop)
{
	images->work.stop = stop;
}

/* A new image that has no file and no number yet. */
static struct sf_image *make_image(struct sf_images *images, const struct sf_mapping *mapping)
{
	struct sf_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->work = &images->work;
	image->fd = -1;
	image->path = strdup(mapping->path);
	image->deleted = mapping->deleted;
	image->inode = mapping->inode;
	image->device = mapping->device;
	image->is_perf_map = sf_is_perf_map_path(mapping->path);
	if (image->path)
		return image;
	free(image);
	return NULL;
}

/* Without memory for it, it is as if the file had no such segments. */
static void read_code(struct sf_image *image)
{
	struct sf_elf_code code[MAX_CODE];
	const size_t n = image->fd >= 0 ? sf_elf_code(image->fd, code, MAX_CODE) : 0;

	image->code = n ? malloc(n * sizeof(code[0])) : NULL;
	if (!image->code)
		return;
	memcpy(image->code, code, n * sizeof(code[0]));
	image->n_code = n;
}

/* By a key that is new. The set owns the image from now on; or it is freed, and NULL returned: no memory. */
static struct sf_image *add_image(struct sf_images *images, struct sf_image *image, const char *key, size_t size)
{
	if (sf_vec_reserve(&images->all, 1))
		image->number = sf_intern_add(images->keys, key, size, NULL);
	if (image->number) {
		read_code(image);
		images->all.items[images->all.n++] = image;
		return image;
	}
	free_image(image);
	return NULL;
}

static size_t make_key(char ret[MAX_KEY], const struct sf_mapping *mapping)
{
	int length = snprintf(ret, MAX_KEY, "%llx %llx %s", (unsigned long long)mapping->device,
			      (unsigned long long)mapping->inode, mapping->path);

	return length < MAX_KEY ? (size_t)length : MAX_KEY - 1;
}

static struct sf_image *find_image(const struct sf_images *images, const char *key, size_t size)
{
	const uint32_t number = sf_intern_find(images->keys, key, size);

	return number ? images->all.items[number - 1] : NULL;
}

/*
 * The plain key with the build id behind it: where a file was rebuilt in its place there are two images. It differs from the
 * plain key also where there is no build id.
 */
static size_t add_build_id(char key[MAX_KEY], size_t size, const uint8_t *build_id, size_t build_id_size)
{
	if (size > MAX_KEY - 1 - SF_ELF_MAX_BUILD_ID)
		size = MAX_KEY - 1 - SF_ELF_MAX_BUILD_ID;
	key[size++] = 0; /* no path has one */
	if (build_id_size)
		memcpy(key + size, build_id, build_id_size);
	return size + build_id_size;
}

/* --- the vDSO --- */

static bool is_vdso(const char *path)
{
	return strcmp(path, "[vdso]") == 0;
}

struct vdso_search {
	struct sf_images *images;
	struct sf_image *found;
};

static bool find_vdso(const struct sf_mapping *mapping, void *arg)
{
	struct vdso_search *search = arg;

	if (!is_vdso(mapping->path))
		return true;
	search->found = sf_images_find(search->images, getpid(), mapping);
	return false;
}

/* The vDSO of this machine, as this process has it; NULL: it has none. */
static struct sf_image *own_vdso(struct sf_images *images)
{
	struct vdso_search search = { .images = images };

	if (!images->own_vdso) {
		sf_process_maps(getpid(), find_vdso, &search, NULL);
		images->own_vdso = search.found;
	}
	return images->own_vdso;
}

/* --- images of processes --- */

/* Its process has ended. A later one that maps the file may show it: the plain key is left for that. */
static struct sf_image *add_missing(struct sf_images *images, struct sf_image *image, char key[MAX_KEY], size_t size)
{
	struct sf_image *known = is_vdso(image->path) ? own_vdso(images) : NULL;

	size = add_build_id(key, size, NULL, 0);
	if (!known)
		known = find_image(images, key, size);
	if (!known)
		return add_image(images, image, key, size);
	free_image(image);
	return known;
}

/* A successor is found by way of the image before it: its own key only has to be a new one. */
static struct sf_image *add_successor(struct sf_images *images, struct sf_image *image, char key[MAX_KEY], size_t size)
{
	const uint32_t number = (uint32_t)images->all.n;

	return add_image(images, image, key, add_build_id(key, size, (const uint8_t *)&number, sizeof(number)));
}

/* By the plain key, the image of the content that the file had last. NULL: there is none yet. */
static struct sf_image *find_latest(const struct sf_images *images, const char *key, size_t size)
{
	struct sf_image *image = find_image(images, key, size);

	while (image && image->successor)
		image = image->successor;
	return image;
}

/* The same for a process: where the image's file may not be the only one with this key, the key becomes that of this one. */
static struct sf_image *find_own(const struct sf_images *images, int32_t pid, const struct sf_mapping *mapping, char key[MAX_KEY],
				 size_t *size)
{
	struct sf_image *known = find_latest(images, key, *size);
	const uint64_t volume = known && known->volume ? sf_mapping_volume(pid, mapping) : 0;

	if (!volume || volume == known->volume)
		return known;
	*size = add_build_id(key, *size, (const uint8_t *)&volume, sizeof(volume));
	return find_latest(images, key, *size);
}

struct sf_image *sf_images_find(struct sf_images *images, int32_t pid,
				const struct sf_mapping *mapping)
{
	char key[MAX_KEY];
	size_t size = make_key(key, mapping);
	struct sf_image *known = find_own(images, pid, mapping, key, &size), *image;

	if (known && !sf_image_is_rewritten(known))
		return known;
	image = make_image(images, mapping);
	if (!image)
		return NULL;
	if (!sf_image_files_open(&images->files, image, pid, mapping))
		return add_missing(images, image, key, size);
	if (!known)
		return add_image(images, image, key, size);
	known->successor = add_successor(images, image, key, size);
	return known->successor;
}

/* --- images that were seen elsewhere --- */

/*
 * An image of the same file by another path: the kernel's records have paths as seen from the root of the process, and lists of
 * mappings as seen from ours. While an image has its file open, no other file can have the file's number, but on another
 * volume.
 */
static struct sf_image *find_same_file(const struct sf_images *images, const struct sf_image_seen *seen)
{
	for (size_t i = 0; seen->inode && i < images->all.n; i++) {
		struct sf_image *image = images->all.items[i];

		if (image->fd >= 0 && !image->from_memory && image->inode == seen->inode && image->device == seen->device &&
		    (seen->build_id_size ? sf_image_seen_as(seen, image->build_id, image->build_id_size) : !image->volume))
			return image;
	}
	return NULL;
}

static struct sf_image *add_seen(struct sf_images *images, int32_t pid,
				 const struct sf_mapping *mapping, const struct sf_image_seen *seen)
{
	char key[MAX_KEY];
	const size_t size = make_key(key, mapping);
	struct sf_image *same_place = is_vdso(mapping->path) ? own_vdso(images) : find_latest(images, key, size);
	struct sf_image *same_file, *known, *image;
	size_t full_size;

	if (same_place && !sf_image_is_rewritten(same_place) &&
	    (!seen->build_id_size || sf_image_seen_as(seen, same_place->build_id, same_place->build_id_size)))
		return same_place;
	full_size = add_build_id(key, size, seen->build_id, seen->build_id_size);
	known = find_image(images, key, full_size);
	if (known && (known->fd >= 0 || same_place))
		return known;
	image = make_image(images, mapping);
	if (!image)
		return NULL;
	sf_image_files_open_seen(&images->files, image, pid, seen);
	if (image->fd >= 0)
		return add_image(images, image, key, same_place ? full_size : size);
	same_file = find_same_file(images, seen);
	if (!known && !same_file)
		return add_image(images, image, key, full_size);
	free_image(image);
	return same_file ? same_file : known;
}

struct sf_image *sf_images_add(struct sf_images *images, int32_t pid,
			       const struct sf_image_seen *seen)
{
	static const char gone[] = " (deleted)";
	char path[MAX_PATH];
	struct sf_mapping mapping = { .inode = seen->inode, .device = seen->device, .path = path };
	size_t length = strnlen(seen->path, sizeof(path) - 1), tail = sizeof(gone) - 1;

	mapping.deleted = length > tail && strcmp(seen->path + length - tail, gone) == 0;
	snprintf(path, sizeof(path), "%.*s", (int)(length - (mapping.deleted ? tail : 0)),
		 seen->path);
	return add_seen(images, pid, &mapping, seen);
}

/* --- tables --- */

static void load_one(struct sf_images *images, struct sf_image *image)
{
	images->loader.load(image);
	if (atomic_fetch_add(&images->table_bytes, image->table_size) + image->table_size <=
	    MAX_TABLES)
		return;
	atomic_fetch_sub(&images->table_bytes, image->table_size);
	images->loader.unload(image);
	image->table = (struct sf_table){ 0 };
	image->table_block = NULL;
	image->table_size = 0;
	snprintf(image->note, sizeof(image->note),
		 "no unwind table: the program's tables take too much memory");
}

static void *load_some(void *arg)
{
	struct sf_images *images = arg;
	uint32_t i;

	while ((i = atomic_fetch_add_explicit(&images->next_to_load, 1, memory_order_relaxed)) <
	       images->all.n) {
		struct sf_image *image = images->all.items[i];

		if (image->fd >= 0 && !image->is_perf_map)
			load_one(images, image);
	}
	return NULL;
}

void sf_images_load(struct sf_images *images)
{
	size_t n_new = images->all.n - images->n_loaded;
	long n_cpus = images->loader.serial ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[MAX_LOADERS];
	int n_threads = 0;

	atomic_store_explicit(&images->next_to_load, images->n_loaded, memory_order_relaxed);
	while (n_threads < MAX_LOADERS && n_threads + 1 < n_cpus && (size_t)n_threads + 1 < n_new &&
	       pthread_create(&threads[n_threads], NULL, load_some, images) == 0)
		n_threads++;
	load_some(images);
	while (n_threads > 0)
		pthread_join(threads[--n_threads], NULL);
	images->n_loaded = (uint32_t)images->all.n;
}

struct sf_image *sf_images_get(struct sf_images *images, uint32_t number)
{
	return images->all.items[number - 1];
}

uint32_t sf_images_count(const struct sf_images *images)
{
	return (uint32_t)images->all.n;
}
