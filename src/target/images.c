/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of the images that the watched processes map.
 *
 * Two mappings are of one image when device, inode and path agree; mappings without a file (the
 * vDSO) are one per session, as all processes share it.
 */
#include "target/images.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/foreign_file.h"
#include "base/intern.h"
#include "base/vec.h"
#include "base/whole_io.h"
#include "elf/facts.h"

/*
 * Copies of memory stand in for files that are gone, or that this user may not open. Together they
 * have at most so many bytes; what does not fit of one is a gap in it. For each, all mappings of its
 * process are gone through.
 */
#define MAX_MEMORY_BYTES ((uint64_t)64 << 20)
#define MAX_MEMORY_IMAGES 64
#define MAX_OFFSET ((uint64_t)1 << 30)

/* Each open file is a descriptor. A desktop's largest programs map some hundred files. */
#define MAX_FILES 8192

/* Tables stay in memory. chromium's table takes some 30 MB, most take less than 2. */
#define MAX_TABLES ((uint64_t)96 << 20)
#define MAX_LOADERS 8
#define MAX_PATH 4096
#define MAX_KEY (MAX_PATH + 128)

struct sf_images {
	struct sf_image_loader loader;
	struct sf_intern *keys;             /* number of the key = number of the image */
	SF_VEC(struct sf_image *) all;
	uint32_t n_loaded;                  /* images below this have been given to the loader */
	_Atomic uint32_t next_to_load;
	struct sf_work work;
	_Atomic uint64_t table_bytes;       /* of all images */
	uint64_t memory_bytes;              /* in copies of memory, */
	uint32_t n_memory, n_files;         /* of so many; open files */
};

struct sf_images *sf_images_create(const struct sf_image_loader *loader)
{
	struct sf_images *images = calloc(1, sizeof(*images));

	if (!images)
		return NULL;
	images->loader = *loader;
	sf_work_init(&images->work);
	images->keys = sf_intern_create();
	if (!images->keys) {
		sf_work_deinit(&images->work);
		free(images);
		return NULL;
	}
	return images;
}

static void destroy_image(struct sf_images *images, struct sf_image *image)
{
	images->loader.unload(image);
	if (image->fd >= 0)
		close(image->fd);
	free(image->path);
	free(image);
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

void sf_images_stop_on(struct sf_images *images, const atomic_bool *stop)
{
	images->work.stop = stop;
}

/* Copies one mapping's memory into the file at its file offset. */
struct memory_copy {
	struct sf_images *images;
	int fd;
	int32_t pid;
	const struct sf_mapping *wanted;
};

static void copy_mapping(struct memory_copy *copy, const struct sf_mapping *mapping)
{
	static const size_t piece = 64 << 10;
	uint8_t *buffer = malloc(piece);
	struct sf_images *images = copy->images;

	for (uint64_t at = mapping->start; buffer && at < mapping->end;) {
		uint64_t left = mapping->end - at, to;
		size_t n = left < piece ? (size_t)left : piece;

		if (n > MAX_MEMORY_BYTES - images->memory_bytes || !sf_work_goes_on(&images->work))
			break;
		n = sf_process_read(copy->pid, buffer, at, n);
		to = mapping->offset + (at - mapping->start);
		if (!n || !sf_file_may_end_at(to + n) || pwrite(copy->fd, buffer, n, (off_t)to) < 0)
			break;
		images->memory_bytes += n;
		at += n;
	}
	free(buffer);
}

static bool copy_if_same_file(const struct sf_mapping *mapping, void *arg)
{
	struct memory_copy *copy = arg;
	const struct sf_mapping *wanted = copy->wanted;

	if (mapping->readable && mapping->inode == wanted->inode &&
	    mapping->device == wanted->device && strcmp(mapping->path, wanted->path) == 0 &&
	    mapping->offset < MAX_OFFSET && mapping->end - mapping->start < MAX_OFFSET)
		copy_mapping(copy, mapping);
	return true;
}

/*
 * A file with what the process has mapped of it: headers and segments, usually no section
 * headers.
 */
static int open_from_memory(struct sf_images *images, int32_t pid,
			    const struct sf_mapping *mapping)
{
	struct memory_copy copy = { .images = images, .pid = pid, .wanted = mapping };

	if (images->n_memory >= MAX_MEMORY_IMAGES)
		return -1;
	images->n_memory++;
	copy.fd = memfd_create("stillframe-image", MFD_CLOEXEC);
	if (copy.fd >= 0)
		sf_process_maps(pid, copy_if_same_file, &copy, NULL);
	return copy.fd;
}

static void note_memory(struct sf_image *image, int error)
{
	const char *why = error == ESTALE  ? "it was replaced"
			  : error == ENXIO ? "it is not a regular file"
					   : sf_os_error(error);

	snprintf(image->note, sizeof(image->note), "the file cannot be opened (%s); %s", why,
		 image->fd >= 0 ? "read from the process's memory"
				: "too many have been read from memory already");
}

/* Whether another file may be open; says so in the note where not. */
static bool may_open(struct sf_images *images, struct sf_image *image)
{
	struct rlimit limit = { .rlim_cur = 0 };
	rlim_t most = MAX_FILES;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < most)
		most = limit.rlim_cur / 2;
	if (images->n_files >= most)
		snprintf(image->note, sizeof(image->note), "too many files have been opened already");
	return images->n_files < most;
}

static void open_image(struct sf_images *images, struct sf_image *image, int32_t pid,
		       const struct sf_mapping *mapping)
{
	int error;

	if (!may_open(images, image))
		return;
	image->fd = mapping->path[0] == '/' ? sf_process_open_mapping(pid, mapping) : -1;
	error = errno;
	if (image->fd < 0) {
		image->fd = open_from_memory(images, pid, mapping);
		image->from_memory = true;
		if (mapping->path[0] == '/')
			note_memory(image, error);
	}
	if (image->fd < 0)
		return;
	images->n_files++;
	sf_elf_build_id(image->fd, image->build_id, &image->build_id_size);
}

/* A new image that has no file yet. */
static struct sf_image *make_image(struct sf_images *images, uint32_t number,
				   const struct sf_mapping *mapping)
{
	struct sf_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->number = number;
	image->work = &images->work;
	image->fd = -1;
	image->path = strdup(mapping->path);
	image->deleted = mapping->deleted;
	image->inode = mapping->inode;
	image->device = mapping->device;
	if (!image->path || !sf_vec_push(&images->all, image)) {
		free(image->path);
		free(image);
		return NULL;
	}
	return image;
}

static struct sf_image *add_image(struct sf_images *images, uint32_t number, int32_t pid,
				  const struct sf_mapping *mapping)
{
	struct sf_image *image = make_image(images, number, mapping);

	if (image)
		open_image(images, image, pid, mapping);
	return image;
}

static size_t make_key(char ret[MAX_KEY], const struct sf_mapping *mapping)
{
	int length = snprintf(ret, MAX_KEY, "%llx %llx %s", (unsigned long long)mapping->device,
			      (unsigned long long)mapping->inode, mapping->path);

	return length < MAX_KEY ? (size_t)length : MAX_KEY - 1;
}

struct sf_image *sf_images_find(struct sf_images *images, int32_t pid,
				const struct sf_mapping *mapping)
{
	char key[MAX_KEY];
	uint32_t number = sf_intern_add(images->keys, key, make_key(key, mapping), NULL);

	if (number && number <= images->all.n)
		return images->all.items[number - 1];
	return number ? add_image(images, number, pid, mapping) : NULL;
}

static bool same_build_id(const struct sf_image_seen *seen, const uint8_t *build_id, size_t size)
{
	return seen->build_id_size == size && memcmp(seen->build_id, build_id, size) == 0;
}

/* Whether an open file is what was seen. */
static bool is_seen(int fd, const struct sf_image_seen *seen)
{
	uint8_t build_id[SF_ELF_MAX_BUILD_ID];
	struct stat status;
	size_t size;

	if (fstat(fd, &status) != 0)
		return false;
	if (!seen->build_id_size)
		return seen->inode == status.st_ino && seen->device == status.st_dev;
	sf_elf_build_id(fd, build_id, &size);
	return same_build_id(seen, build_id, size);
}

/* The file at this path, for `pid` 0 as we see it, if it is what was seen; else -1. */
static int open_seen(int32_t pid, const char *path, const struct sf_image_seen *seen)
{
	int fd = -1;

	if (path[0] != '/')
		return -1;
	if (pid)
		fd = sf_process_open_path(pid, path);
	else
		sf_foreign_open(AT_FDCWD, path, &fd, NULL);
	if (fd >= 0 && !is_seen(fd, seen)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void open_seen_image(struct sf_images *images, struct sf_image *image, int32_t pid,
			    const struct sf_mapping *mapping,
			    const struct sf_image_seen *seen)
{
	image->build_id_size = seen->build_id_size;
	if (seen->build_id_size)
		memcpy(image->build_id, seen->build_id, seen->build_id_size);
	if (!may_open(images, image))
		return;
	if (pid)
		image->fd = open_seen(pid, mapping->path, seen);
	if (image->fd < 0)
		image->fd = open_seen(0, mapping->path, seen);
	images->n_files += image->fd >= 0;
	if (image->fd < 0)
		snprintf(image->note, sizeof(image->note),
			 "the file that was mapped cannot be found any more");
}

static bool find_vdso(const struct sf_mapping *mapping, void *arg)
{
	struct sf_images *images = ((void **)arg)[0];
	struct sf_image **ret = &((struct sf_image **)arg)[1];

	if (strcmp(mapping->path, "[vdso]") != 0)
		return true;
	*ret = sf_images_find(images, getpid(), mapping);
	return false;
}

/* The vDSO of this machine, as this process has it; NULL: it has none. */
static struct sf_image *own_vdso(struct sf_images *images)
{
	void *arg[2] = { images, NULL };

	sf_process_maps(getpid(), find_vdso, arg, NULL);
	return arg[1];
}

/* The image with this key; NULL: there is none. */
static struct sf_image *find_key(const struct sf_images *images, const char *key, size_t size)
{
	uint32_t number = sf_intern_find(images->keys, key, size);

	return number && number <= images->all.n ? images->all.items[number - 1] : NULL;
}

/*
 * The plain key with the build id behind it: where a file was rebuilt in its place there are two
 * images.
 */
static size_t add_build_id(char key[MAX_KEY], size_t size, const struct sf_image_seen *seen)
{
	if (size > MAX_KEY - 1 - SF_MAX_BUILD_ID)
		size = MAX_KEY - 1 - SF_MAX_BUILD_ID;
	key[size++] = 0; /* no path has one */
	if (seen->build_id_size)
		memcpy(key + size, seen->build_id, seen->build_id_size);
	return size + seen->build_id_size;
}

static struct sf_image *add_seen(struct sf_images *images, int32_t pid,
				 const struct sf_mapping *mapping, const struct sf_image_seen *seen)
{
	char key[MAX_KEY];
	size_t size = make_key(key, mapping);
	bool vdso = strcmp(mapping->path, "[vdso]") == 0;
	struct sf_image *image = vdso ? own_vdso(images) : find_key(images, key, size);
	uint32_t number;

	if (image && (!seen->build_id_size ||
		      same_build_id(seen, image->build_id, image->build_id_size)))
		return image;
	if (image)
		size = add_build_id(key, size, seen);
	number = sf_intern_add(images->keys, key, size, NULL);
	if (number && number <= images->all.n)
		return images->all.items[number - 1];
	image = number ? make_image(images, number, mapping) : NULL;
	if (image)
		open_seen_image(images, image, pid, mapping, seen);
	return image;
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

		if (image->fd >= 0)
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
