/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes frames: from a frame's key to the MethodDesc, from there to the name, and from the offset in the code to the line.
 * Everything is read when a key occurs for the first time, as the code may be gone later.
 */
#include "runtime/coreclr/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/vec.h"
#include "frozen/coreclr/body.h"
#include "runtime/coreclr/debug_info.h"
#include "runtime/coreclr/types.h"

struct place_key {            /* no padding */
	uint64_t token, pc;
	uint32_t id;
	uint16_t kind, exact;
};

struct place {
	uint32_t function, linkage, file;  /* texts by number; 0: "" */
	uint32_t line;
	uint8_t kind;                      /* enum sf_frame_kind */
};

struct sf_clr_places {
	const struct sf_clr_description *description;
	const struct sf_reader *memory;
	const struct sf_coreclr *object;
	int32_t pid;
	struct sf_clr_modules modules;
	struct sf_intern *texts, *keys;
	SF_VEC(struct place) places;
	struct sf_location location;
};

/* The facts about a frame's code. */
struct code {
	const struct sf_clr_range *range;
	struct sf_clr_body body;
	struct sf_clr_method method;
	bool has_method;
};

/* Names of kinds of stubs (src/coreclr/vm/codeman.h: StubCodeBlockKind), as .NET 10 numbers them. */
static const char *const stub_names[] = {
	[1] = "jump stub", [3] = "dynamic helper", [4] = "stub precode", [5] = "fixup precode",
	[6] = "virtual dispatch stub", [7] = "virtual resolve stub", [8] = "virtual lookup stub",
	[9] = "vtable call stub", [10] = "call counting stub",
};

struct sf_clr_places *sf_clr_places_create(const struct sf_clr_description *description,
					   const struct sf_reader *memory, int32_t pid)
{
	struct sf_clr_places *places = calloc(1, sizeof(*places));

	if (!places)
		return NULL;
	places->description = description;
	places->memory = memory;
	places->pid = pid;
	places->texts = sf_intern_create();
	places->keys = sf_intern_create();
	if (places->texts && places->keys)
		return places;
	sf_clr_places_destroy(places);
	return NULL;
}

void sf_clr_places_destroy(struct sf_clr_places *places)
{
	if (!places)
		return;
	sf_clr_modules_deinit(&places->modules);
	sf_intern_destroy(places->texts);
	sf_intern_destroy(places->keys);
	sf_vec_deinit(&places->places);
	free(places);
}

void sf_clr_places_use(struct sf_clr_places *places, const struct sf_coreclr *object)
{
	places->object = object;
}

static uint64_t find_method(const struct sf_clr_places *places, const struct sf_frame *frame,
			    struct code *code)
{
	uint64_t desc;

	if (code->range->code == SF_CLR_CODE_PRECOMPILED)
		return sf_clr_precompiled_method(places->description, places->memory, code->range,
						 &code->body.function);
	desc = sf_clr_jitted_method(places->description, places->memory, frame->token);
	/* Other code may have come to the same place. */
	return (uint32_t)(desc >> 3) == frame->id ? desc : 0;
}

static bool find_code(const struct sf_clr_places *places, const struct sf_frame *frame, struct code *ret)
{
	*ret = (struct code){ .range = sf_clr_find_range(places->object, frame->token) };
	if (!ret->range || sf_clr_find_body(&places->description->layout, ret->range, places->memory,
					    frame->token, &ret->body) != SF_CLR_FOUND_BODY)
		return false;
	ret->has_method = sf_clr_read_method(places->description, places->memory,
					     find_method(places, frame, ret), &ret->method);
	return true;
}

static void describe_stub(struct sf_clr_places *places, const struct sf_frame *frame, struct place *place)
{
	const char *name = frame->id < sizeof(stub_names) / sizeof(stub_names[0]) ? stub_names[frame->id] : NULL;
	char text[64];

	if (frame->id == SF_CLR_STUB_HELPER)
		name = "helper";
	if (name)
		snprintf(text, sizeof(text), "[.NET %s]", name);
	else
		snprintf(text, sizeof(text), frame->id == SF_CLR_STUB_UNKNOWN ? "[unknown .NET code]" :
								      "[.NET stub]");
	place->function = place->linkage = sf_intern_string(places->texts, text);
}

static void describe_unnamed(struct sf_clr_places *places, const struct code *code, struct place *place)
{
	const struct sf_clr_module *module = code->has_method ?
		sf_clr_modules_find(&places->modules, places->description, places->memory,
				    code->method.module) : NULL;
	char name[128] = "?", text[256];

	if (module)
		sf_clr_module_name(module, name, sizeof(name));
	snprintf(text, sizeof(text), code->has_method ? "[method 0x%08x of %s]" : "[unknown .NET method]",
		 0x06000000u | code->method.row, name);
	place->function = place->linkage = sf_intern_string(places->texts, text);
}

static void describe_method(struct sf_clr_places *places, const struct code *code, struct place *place)
{
	const struct sf_clr_naming naming = { places->description, places->memory, &places->modules };
	struct sf_clr_method_name name;

	if (!code->has_method || !sf_clr_name_method(&naming, &code->method, &name)) {
		describe_unnamed(places, code, place);
		return;
	}
	place->function = sf_intern_string(places->texts, name.written);
	place->linkage = sf_intern_string(places->texts, name.raw);
}

/* The offset of the statement in the method's IL. Where the map says nothing, it is the method's start. */
static uint32_t il_offset(const struct sf_clr_places *places, const struct code *code, uint32_t native)
{
	uint32_t il;
	bool found = code->range->code == SF_CLR_CODE_PRECOMPILED ?
		sf_clr_precompiled_il(places->description, places->memory, code->range, code->body.function,
				      native, &il) :
		sf_clr_jitted_il(places->description, places->memory, code->body.header, native, &il);

	return found ? il : 0;
}

static void describe_line(struct sf_clr_places *places, const struct sf_frame *frame, const struct code *code,
			  struct place *place)
{
	struct sf_clr_module *module = code->method.row ?
		sf_clr_modules_find(&places->modules, places->description, places->memory,
				    code->method.module) : NULL;
	const uint64_t start = code->range->code == SF_CLR_CODE_PRECOMPILED ?
		code->range->base + code->range->functions->items[code->body.function].begin :
		code->body.method_start;
	const uint64_t native = frame->pc - !(frame->flags & SF_FRAME_EXACT) - start;
	struct sf_clr_line line;
	char file[SF_CLR_PATH];

	if (!module || native > UINT32_MAX ||
	    !sf_clr_module_open_pdb(&places->modules, module, places->pid) ||
	    !sf_clr_pdb_line(&module->pdb, code->method.row, il_offset(places, code, (uint32_t)native), &line))
		return;
	sf_clr_pdb_document(&module->pdb, line.document, file, sizeof(file));
	place->file = *file ? sf_intern_string(places->texts, file) : 0;
	place->line = line.line;
}

/* Kinds of frames by tier. */
static const uint8_t tier_kinds[] = {
	[SF_CLR_TIER_0] = SF_KIND_TIER_0,
	[SF_CLR_TIER_1] = SF_KIND_TIER_1,
	[SF_CLR_TIER_1_OSR] = SF_KIND_OSR,
	[SF_CLR_TIER_OPTIMIZED] = SF_KIND_OPTIMIZED,
	[SF_CLR_TIER_0_INSTRUMENTED] = SF_KIND_TIER_0_COUNTING,
	[SF_CLR_TIER_1_INSTRUMENTED] = SF_KIND_TIER_1_COUNTING,
	[SF_CLR_TIER_UNKNOWN] = SF_KIND_JITTED,
};

static void describe_kind(const struct sf_clr_places *places, const struct code *code, struct place *place)
{
	if (place->kind == SF_KIND_JITTED && code->has_method)
		place->kind = tier_kinds[sf_clr_tier_of(places->description, places->memory, &code->method,
							code->body.method_start)];
}

static struct place describe(struct sf_clr_places *places, const struct sf_frame *frame)
{
	struct place place = { .kind = frame->kind };
	struct code code;

	if (frame->kind == SF_KIND_STUB) {
		describe_stub(places, frame, &place);
	} else {
		const bool found = find_code(places, frame, &code);

		describe_method(places, &code, &place);
		describe_kind(places, &code, &place);
		if (found && code.has_method)
			describe_line(places, frame, &code, &place);
	}
	return place;
}

uint32_t sf_clr_places_number(struct sf_clr_places *places, const struct sf_frame *frame)
{
	const struct place_key key = {
		.token = frame->token,
		.pc = frame->kind == SF_KIND_STUB ? 0 : frame->pc,
		.id = frame->id,
		.kind = frame->kind,
		.exact = frame->flags & SF_FRAME_EXACT,
	};
	const uint32_t number = sf_intern_add(places->keys, &key, sizeof(key), NULL);

	if (number > places->places.n && !sf_vec_push(&places->places, describe(places, frame)))
		return 0;
	return number;
}

static const char *text_of(const struct sf_clr_places *places, uint32_t number)
{
	return number ? sf_intern_get(places->texts, number, NULL) : "";
}

uint8_t sf_clr_places_kind(const struct sf_clr_places *places, uint32_t number)
{
	return number && number <= places->places.n ? places->places.items[number - 1].kind : SF_KIND_JITTED;
}

size_t sf_clr_places_functions(struct sf_clr_places *places, uint32_t number, const struct sf_location **ret)
{
	const struct place *place;

	if (!number || number > places->places.n)
		return 0;
	place = &places->places.items[number - 1];
	places->location = (struct sf_location){
		.function = text_of(places, place->function), .linkage = text_of(places, place->linkage),
		.file = text_of(places, place->file), .line = place->line,
	};
	*ret = &places->location;
	return 1;
}
