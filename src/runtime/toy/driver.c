/* SPDX-License-Identifier: Apache-2.0 */
/* The ordinary side of the runtime for tests (frozen/toy/toy.h): finding it, naming its frames and threads. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/vec.h"
#include "elf/file.h"
#include "frozen/toy/toy.h"
#include "os/process.h"
#include "frozen/runtime_list.h"
#include "runtime/runtime.h"

#define MAX_NAME 64
#define MAX_THREADS 64

extern const struct sf_runtime_driver sf_toy_driver;

struct key {                      /* no padding */
	uint64_t method;
	int32_t index;
	uint32_t kind;
};

struct place {
	uint32_t name, file, line;    /* texts by number, 0: "" */
};

struct state {
	struct sf_toy_vm vm;
	struct sf_reader memory;
	uint32_t image;
	uint64_t bias, address;       /* address: of the symbol */
	struct sf_intern *texts, *keys;
	SF_VEC(struct place) places;
	struct sf_location function;
};

static void *create(void)
{
	return calloc(1, sizeof(struct state));
}

static void destroy(void *arg)
{
	struct state *state = arg;

	sf_intern_destroy(state->texts);
	sf_intern_destroy(state->keys);
	sf_vec_deinit(&state->places);
	free(state);
}

static bool look(void *arg, const struct sf_process *process, struct sf_images *images)
{
	struct state *state = arg;

	for (size_t i = 0; i < process->map->n_regions; i++) {
		const struct sf_region *region = &process->map->regions[i];
		const char *slash = region->image ?
			strrchr(sf_images_get(images, region->image)->path, '/') : NULL;

		if (!slash || strcmp(slash, "/toy_vm") != 0)
			continue;
		state->image = region->image;
		state->bias = region->bias;
		return true;
	}
	return false;
}

static uint64_t find_symbol(Elf *elf, Elf_Scn *section, const char *name)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Shdr header;
	GElf_Sym symbol;

	if (!data || !gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM)
		return 0;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		const char *found = elf_strptr(elf, header.sh_link, symbol.st_name);

		if (found && strcmp(found, name) == 0)
			return symbol.st_value;
	}
	return 0;
}

static uint64_t find_vm(int fd)
{
	Elf_Scn *section = NULL;
	struct sf_elf file;
	uint64_t address = 0;

	if (fd < 0 || !sf_elf_open(fd, &file, NULL))
		return 0;
	while (!address && (section = elf_nextscn(file.elf, section)))
		address = find_symbol(file.elf, section, "sf_toy_vm");
	sf_elf_close(&file);
	return address;
}

/* Inside a program files are open only while they are looked at. */
static uint64_t vm_address(const struct state *state, int32_t pid, const struct sf_image *image)
{
	const struct sf_mapping mapping = { .path = image->path, .inode = image->inode,
					    .device = image->device };
	int fd = image->fd >= 0 ? image->fd : sf_process_open_mapping(pid, &mapping);
	uint64_t address = find_vm(fd);

	if (fd >= 0 && fd != image->fd)
		close(fd);
	return address ? state->bias + address : 0;
}

/* The object that walks use, from what the program says now. NULL: no memory. */
static const struct sf_runtime *make_object(const struct sf_toy_vm *vm)
{
	struct sf_toy *toy = malloc(sizeof(*toy));
	const uint64_t size = vm->copy ? SF_TOY_SIZE : 0;

	if (!toy)
		return NULL;
	*toy = (struct sf_toy){
		.runtime = { .ops = &sf_toy_ops, .start = vm->enter, .end = vm->enter_end, .slot = SF_RUNTIME_TOY },
		.codes = {
			{ .start = vm->enter, .end = vm->enter_end, .runtime = &toy->runtime },
			{ .start = vm->copy, .end = vm->copy + size, .runtime = &toy->runtime },
		},
	};
	if (size && vm->copy < vm->enter)
		toy->runtime.start = vm->copy;
	if (size && vm->copy + size > vm->enter_end)
		toy->runtime.end = vm->copy + size;
	return &toy->runtime;
}

static const struct sf_runtime *attach(void *arg, const struct sf_process *process,
				       struct sf_images *images, const struct sf_reader *memory)
{
	struct state *state = arg;
	uint64_t address = vm_address(state, process->pid, sf_images_get(images, state->image));

	state->memory = *memory;
	state->address = address;
	if (!address || !sf_read(memory, &state->vm, address, sizeof(state->vm)) ||
	    state->vm.magic != SF_TOY_MAGIC || state->vm.enter_end - state->vm.enter != SF_TOY_SIZE)
		return NULL;
	if (!state->texts)
		state->texts = sf_intern_create();
	if (!state->keys)
		state->keys = sf_intern_create();
	if (!state->texts || !state->keys)
		return NULL;
	return make_object(&state->vm);
}

static const struct sf_runtime *refresh(void *arg, const struct sf_process *process,
					const struct sf_runtime *present, bool inside)
{
	struct state *state = arg;
	const struct sf_toy *toy = (const struct sf_toy *)present;
	const struct sf_runtime *made;
	struct sf_toy_vm vm;

	(void)process;
	(void)inside;
	if (!sf_read(&state->memory, &vm, state->address, sizeof(vm)) || vm.copy == toy->codes[1].start)
		return present;
	made = make_object(&vm);
	return made ? made : present;
}

static void detach(void *arg, const struct sf_runtime *object)
{
	(void)arg;
	free((void *)object);
}

static const char *news(void *arg)
{
	(void)arg;
	return NULL;
}

/* A string of the process; 0: "". */
static uint32_t read_text(struct state *state, uint64_t address)
{
	char text[MAX_NAME] = "";

	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		if (!sf_read(&state->memory, &text[i], address + i, 1) || !text[i])
			break;
	}
	text[sizeof(text) - 1] = 0;
	return *text ? sf_intern_string(state->texts, text) : 0;
}

static struct place describe(struct state *state, const struct sf_frame *frame)
{
	struct sf_toy_method method;

	if (frame->kind != SF_KIND_INTERPRETED)
		return (struct place){ .name = sf_intern_string(state->texts, "[toy entry]") };
	if (!sf_read(&state->memory, &method, frame->token, sizeof(method)))
		return (struct place){ .name = sf_intern_string(state->texts, "[unknown toy method]") };
	return (struct place){
		.name = read_text(state, method.name),
		.file = read_text(state, method.file),
		.line = (uint32_t)(method.first_line + (uint32_t)frame->bci),
	};
}

static uint32_t place(void *arg, const struct sf_frame *frame)
{
	struct state *state = arg;
	const struct key key = { frame->token, frame->bci, frame->kind };
	uint32_t number = sf_intern_add(state->keys, &key, sizeof(key), NULL);

	if (number > state->places.n && !sf_vec_push(&state->places, describe(state, frame)))
		return 0;
	return number;
}

static const char *text_of(const struct state *state, uint32_t number)
{
	return number ? sf_intern_get(state->texts, number, NULL) : "";
}

static size_t functions(void *arg, uint32_t number, const struct sf_location **ret)
{
	struct state *state = arg;
	const struct place *found = &state->places.items[number - 1];

	state->function = (struct sf_location){
		.function = text_of(state, found->name), .linkage = text_of(state, found->name),
		.file = text_of(state, found->file), .line = found->line,
	};
	*ret = &state->function;
	return 1;
}

static uint64_t thread(void *arg, int32_t tid)
{
	struct state *state = arg;
	uint64_t at = state->vm.threads, found;

	for (uint64_t i = 0; i < state->vm.n_threads && i < MAX_THREADS; i++) {
		if (sf_read_u64(&state->memory, at, &found) && found == (uint64_t)tid)
			return at;
		at += sizeof(struct sf_toy_thread);
	}
	return 0;
}

static enum sf_naming thread_name(void *arg, int32_t tid, char *ret, size_t size)
{
	struct state *state = arg;
	uint64_t handle = thread(arg, tid);
	struct sf_toy_thread found;

	if (!handle || size < sizeof(found.name) ||
	    !sf_read(&state->memory, &found, handle, sizeof(found)))
		return SF_UNNAMED;
	found.name[sizeof(found.name) - 1] = 0;
	memcpy(ret, found.name, sizeof(found.name));
	return *ret ? SF_NAMED : SF_UNNAMED;
}

static void examine(void *arg, struct sf_images *images, const struct sf_runtime_findings *findings)
{
	const struct state *state = arg;

	(void)images;
	if (state->image)
		findings->add(findings, true, "toy: its frames are shown", "");
}

const struct sf_runtime_driver sf_toy_driver = {
	.ops = &sf_toy_ops,
	.create = create,
	.destroy = destroy,
	.look = look,
	.attach = attach,
	.tries = { .pause_ns = 5000000, .n_easy = 200, .max_doublings = 8 },
	.refresh = refresh,
	.detach = detach,
	.news = news,
	.place = place,
	.functions = functions,
	.thread = thread,
	.thread_name = thread_name,
	.examine = examine,
};
