/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two mappings are of one image when device, inode and path agree; mappings without a file (the
 * vDSO) are one per session, as all processes share it.
 */
#include "target/images.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/vec.h"
#include "elf/facts.h"

#define MAX_MEMORY_IMAGE ((uint64_t)256 << 20)
#define MAX_LOADERS 8

struct sf_images {
	struct sf_image_loader loader;
	struct sf_intern *keys;             /* number of the key = number of the image */
	SF_VEC(struct sf_image *) all;
	uint32_t n_loaded;                  /* images below this have been given to the loader */
	_Atomic uint32_t next_to_load;
};

struct sf_images *sf_images_create(const struct sf_image_loader *loader)
{
	struct sf_images *images = calloc(1, sizeof(*images));

	if (!images)
		return NULL;
	images->loader = *loader;
	images->keys = sf_intern_create();
	if (!images->keys) {
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
	free(images);
}

/* Copies one mapping's memory into the file at its file offset. */
static void copy_mapping(int fd, int32_t pid, const struct sf_mapping *mapping)
{
	static const size_t piece = 64 << 10;
	uint8_t *buffer = malloc(piece);

	for (uint64_t at = mapping->start; buffer && at < mapping->end;) {
		uint64_t left = mapping->end - at;
		size_t n = sf_process_read(pid, buffer, at, left < piece ? (size_t)left : piece);

		if (!n || pwrite(fd, buffer, n, (off_t)(mapping->offset + (at - mapping->start))) < 0)
			break;
		at += n;
	}
	free(buffer);
}

struct memory_copy {
	int fd;
	int32_t pid;
	const struct sf_mapping *wanted;
};

static bool copy_if_same_file(const struct sf_mapping *mapping, void *arg)
{
	struct memory_copy *copy = arg;
	const struct sf_mapping *wanted = copy->wanted;

	if (mapping->readable && mapping->inode == wanted->inode &&
	    mapping->device == wanted->device && strcmp(mapping->path, wanted->path) == 0 &&
	    mapping->offset < MAX_MEMORY_IMAGE &&
	    mapping->end - mapping->start < MAX_MEMORY_IMAGE - mapping->offset)
		copy_mapping(copy->fd, copy->pid, mapping);
	return true;
}

/* A file with what the process has mapped of it: headers and segments, usually no section headers. */
static int open_from_memory(int32_t pid, const struct sf_mapping *mapping)
{
	struct memory_copy copy = { .pid = pid, .wanted = mapping };

	copy.fd = memfd_create("stillframe-image", MFD_CLOEXEC);
	if (copy.fd >= 0)
		sf_process_maps(pid, copy_if_same_file, &copy, NULL);
	return copy.fd;
}

static bool may_open(const struct sf_mapping *mapping)
{
	/* Opening a device may do something; memory of /dev/shm is a file. */
	return mapping->path[0] == '/' && (strncmp(mapping->path, "/dev/", 5) != 0 ||
					   strncmp(mapping->path, "/dev/shm/", 9) == 0);
}

static void open_image(struct sf_image *image, int32_t pid, const struct sf_mapping *mapping)
{
	int error;

	image->fd = may_open(mapping) ? sf_process_open_mapping(pid, mapping) : -1;
	error = errno;
	if (image->fd < 0) {
		image->fd = open_from_memory(pid, mapping);
		image->from_memory = true;
		if (mapping->path[0] == '/')
			snprintf(image->note, sizeof(image->note),
				 "the file cannot be opened (%s); read from the process's memory",
				 error == ESTALE ? "it was replaced" : strerror(error));
	}
	if (image->fd >= 0)
		sf_elf_build_id(image->fd, image->build_id, &image->build_id_size);
}

static struct sf_image *add_image(struct sf_images *images, uint32_t number, int32_t pid,
				  const struct sf_mapping *mapping)
{
	struct sf_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->number = number;
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
	open_image(image, pid, mapping);
	return image;
}

struct sf_image *sf_images_find(struct sf_images *images, int32_t pid,
				const struct sf_mapping *mapping)
{
	char key[4096 + 64];
	int length = snprintf(key, sizeof(key), "%llx %llx %s", (unsigned long long)mapping->device,
			      (unsigned long long)mapping->inode, mapping->path);
	uint32_t number;

	if (length >= (int)sizeof(key))
		length = sizeof(key) - 1;
	number = sf_intern_add(images->keys, key, (size_t)length, NULL);
	if (number && number <= images->all.n)
		return images->all.items[number - 1];
	return number ? add_image(images, number, pid, mapping) : NULL;
}

static void *load_some(void *arg)
{
	struct sf_images *images = arg;
	uint32_t i;

	while ((i = atomic_fetch_add_explicit(&images->next_to_load, 1, memory_order_relaxed)) <
	       images->all.n) {
		struct sf_image *image = images->all.items[i];

		if (image->fd >= 0)
			images->loader.load(image);
	}
	return NULL;
}

void sf_images_load(struct sf_images *images)
{
	size_t n_new = images->all.n - images->n_loaded;
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
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
