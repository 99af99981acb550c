/* SPDX-License-Identifier: Apache-2.0 */
/* Each block has its size in front of it. */
#include "base/block.h"

#include <stdint.h>
#include <sys/mman.h>

struct head {
	size_t size;
	max_align_t start[];
};

void *sf_block_new(size_t size)
{
	struct head *head = MAP_FAILED;

	if (size <= PTRDIFF_MAX - sizeof(*head))
		head = mmap(NULL, sizeof(*head) + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (head == MAP_FAILED)
		return NULL;
	head->size = sizeof(*head) + size;
	return head->start;
}

void sf_block_free(void *block)
{
	struct head *head;

	if (!block)
		return;
	head = (struct head *)((uint8_t *)block - sizeof(*head));
	munmap(head, head->size);
}
