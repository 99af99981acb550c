/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the functions of the vDSO in its ELF image, which is in memory (vdso(7)). The loader is not used,
 * because it takes a lock that a forked child may wait for in vain. libc's clock_gettime is not called in
 * handlers: a program may have one in front of it (a sanitizer, libfaketime) that takes locks.
 */
#include "agent/libc/vdso.h"

#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "frozen/arch.h"
#include "frozen/raw.h"

struct image {
	uintptr_t bias;
	const ElfW(Sym) *symbols;
	const char *names;
	size_t n_symbols, names_size;
};

static const void *at(const struct image *image, uintptr_t address)
{
	return (const void *)(image->bias + address);
}

/* The symbols end where their names begin: so linkers put them (there may be no hash table that says how many there are). */
static void read_dynamic(struct image *image, const ElfW(Dyn) *dynamic)
{
	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		switch (dynamic->d_tag) {
		case DT_SYMTAB:
			image->symbols = at(image, dynamic->d_un.d_ptr);
			break;
		case DT_STRTAB:
			image->names = at(image, dynamic->d_un.d_ptr);
			break;
		case DT_STRSZ:
			image->names_size = dynamic->d_un.d_val;
			break;
		default:
			break;
		}
	}
	if ((uintptr_t)image->names > (uintptr_t)image->symbols && image->symbols)
		image->n_symbols = ((uintptr_t)image->names - (uintptr_t)image->symbols) /
				   sizeof(*image->symbols);
}

static struct image read_image(uintptr_t start)
{
	const ElfW(Ehdr) *header = (const void *)start;
	const ElfW(Phdr) *segments = (const void *)(start + header->e_phoff);
	const ElfW(Phdr) *dynamic = NULL;
	struct image image = { 0 };

	for (unsigned i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD && !image.bias)
			image.bias = start + segments[i].p_offset - segments[i].p_vaddr;
		if (segments[i].p_type == PT_DYNAMIC)
			dynamic = &segments[i];
	}
	if (image.bias && dynamic)
		read_dynamic(&image, at(&image, dynamic->p_vaddr));
	return image;
}

/* 0: the image has no function of this name. `name` NULL: the architecture has none. */
static uintptr_t find(const struct image *image, const char *name)
{
	for (size_t i = 0; name && i < image->n_symbols; i++) {
		const ElfW(Sym) *symbol = &image->symbols[i];

		if (symbol->st_shndx != SHN_UNDEF && symbol->st_name < image->names_size &&
		    strcmp(image->names + symbol->st_name, name) == 0)
			return image->bias + symbol->st_value;
	}
	return 0;
}

static atomic_bool is_clock_forbidden;

void sf_agent_forbid_vdso_clock(void)
{
	atomic_store(&is_clock_forbidden, true);
	atomic_store(&sf_raw_vdso.clock, NULL);
}

bool sf_agent_find_vdso(void)
{
	const uintptr_t start = getauxval(AT_SYSINFO_EHDR);
	const struct image image = start ? read_image(start) : (struct image){ 0 };

	if (!atomic_load(&is_clock_forbidden))
		atomic_store(&sf_raw_vdso.clock, (sf_vdso_clock_fn *)find(&image, sf_arch_host()->vdso_clock));
	atomic_store(&sf_raw_vdso.cpu, (sf_vdso_cpu_fn *)find(&image, sf_arch_host()->vdso_cpu));
	return start != 0;
}
