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
#include "frozen/coreclr/code.h"
#include "frozen/coreclr/method_id.h"
#include "runtime/coreclr/debug_info.h"
#include "runtime/coreclr/inlined.h"
#include "runtime/coreclr/types.h"

struct place_key {            /* no padding */
	uint64_t token, pc;
	uint32_t id;
	uint16_t kind, exact;
};

struct function {
	uint32_t function, linkage, file;  /* texts by number; 0: "" */
	uint32_t line;
};

struct place {
	uint32_t first, n;                 /* of `functions`, innermost first */
	uint8_t kind;                      /* enum sf_frame_kind */
	uint64_t type;                     /* MethodTable of the method whose code it is; 0: unknown */
};

struct sf_clr_places {
	const struct sf_clr_description *description;
	const struct sf_reader *memory;
	const struct sf_coreclr *object;
	int32_t pid;
	struct sf_clr_modules modules;
	struct sf_intern *texts, *keys;
	SF_VEC(struct function) functions;
	SF_VEC(struct place) places;
	struct sf_location locations[SF_CLR_MAX_INLINED];
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
	sf_vec_deinit(&places->functions);
	sf_vec_deinit(&places->places);
	free(places);
}

void sf_clr_places_use(struct sf_clr_places *places, const struct sf_coreclr *object)
{
	places->object = object;
}

struct sf_clr_naming sf_clr_places_naming(struct sf_clr_places *places)
{
	return (struct sf_clr_naming){ places->description, places->memory, &places->modules };
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
	return sf_clr_method_id(&places->description->layout, code->range, places->memory, desc) == frame->id ? desc : 0;
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

static void describe_stub(struct sf_clr_places *places, const struct sf_frame *frame, struct function *ret)
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
	ret->function = ret->linkage = sf_intern_string(places->texts, text);
}

static void describe_unnamed(struct sf_clr_places *places, const struct sf_clr_method *method, struct function *ret)
{
	const struct sf_clr_module *module = method ?
		sf_clr_modules_find(&places->modules, places->description, places->memory, method->module) : NULL;
	char name[128] = "?", text[256];

	if (module)
		sf_clr_module_name(module, name, sizeof(name));
	snprintf(text, sizeof(text), method ? "[method 0x%08x of %s]" : "[unknown .NET method]",
		 0x06000000u | (method ? method->row : 0), name);
	ret->function = ret->linkage = sf_intern_string(places->texts, text);
}

/* `method`: NULL if it is not known. */
static void describe_method(struct sf_clr_places *places, const struct sf_clr_method *method, struct function *ret)
{
	const struct sf_clr_naming naming = sf_clr_places_naming(places);
	struct sf_clr_method_name name;

	if (!method || !sf_clr_name_method(&naming, method, &name)) {
		describe_unnamed(places, method, ret);
		return;
	}
	ret->function = sf_intern_string(places->texts, name.written);
	ret->linkage = sf_intern_string(places->texts, name.raw);
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

/* The offset of a frame's pc, or of the call in front of it, in its method's code. */
static uint64_t native_offset(const struct sf_frame *frame, const struct code *code)
{
	const uint64_t start = code->range->code == SF_CLR_CODE_PRECOMPILED ?
		code->range->base + code->range->functions->items[code->body.function].begin :
		code->body.method_start;

	return frame->pc - !(frame->flags & SF_FRAME_EXACT) - start;
}

static void describe_line(struct sf_clr_places *places, const struct sf_clr_method *method, uint32_t il, struct function *ret)
{
	struct sf_clr_module *module = method->row ?
		sf_clr_modules_find(&places->modules, places->description, places->memory, method->module) : NULL;
	struct sf_clr_line line;
	char file[SF_CLR_PATH];

	if (!module || !sf_clr_module_open_pdb(&places->modules, module, places->memory, places->pid) ||
	    !sf_clr_pdb_line(&module->pdb, method->row, il, &line))
		return;
	sf_clr_pdb_document(&module->pdb, line.document, file, sizeof(file));
	ret->file = *file ? sf_intern_string(places->texts, file) : 0;
	ret->line = line.line;
}

/* The methods that were inlined at a frame's pc, without the one whose code it is. False: no memory. */
static bool describe_inlined(struct sf_clr_places *places, const struct sf_clr_inlined *inlined, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct function function = { 0 };
		struct sf_clr_method method;
		const bool found = sf_clr_read_method(places->description, places->memory, inlined[i].method, &method);

		describe_method(places, found ? &method : NULL, &function);
		if (found && inlined[i].il != SF_CLR_NO_IL)
			describe_line(places, &method, inlined[i].il, &function);
		if (!sf_vec_push(&places->functions, function))
			return false;
	}
	return true;
}

/* The methods at a pc in known code. False: no memory. */
static bool describe_code(struct sf_clr_places *places, const struct sf_frame *frame, const struct code *code)
{
	const uint64_t native = native_offset(frame, code);
	struct sf_clr_inlined inlined[SF_CLR_MAX_INLINED];
	struct function function = { 0 };
	uint32_t il = SF_CLR_NO_IL;
	size_t n = 0;

	if (code->range->code != SF_CLR_CODE_PRECOMPILED && native <= UINT32_MAX)
		n = sf_clr_inlined_at(places->description, places->memory, code->body.header, (uint32_t)native, inlined);
	if (n && inlined[n - 1].method != code->method.desc)
		n = 0;
	if (n)
		il = inlined[n - 1].il;
	if (!describe_inlined(places, inlined, n ? n - 1 : 0))
		return false;
	describe_method(places, &code->method, &function);
	if (il == SF_CLR_NO_IL && native <= UINT32_MAX)
		il = il_offset(places, code, (uint32_t)native);
	describe_line(places, &code->method, il, &function);
	return sf_vec_push(&places->functions, function);
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
	if (place->kind == SF_KIND_JITTED)
		place->kind = tier_kinds[sf_clr_tier_of(places->description, places->memory, &code->method,
							code->body.method_start)];
}

static bool describe_without_code(struct sf_clr_places *places, const struct sf_frame *frame)
{
	struct function function = { 0 };

	if (frame->kind == SF_KIND_STUB)
		describe_stub(places, frame, &function);
	else
		describe_unnamed(places, NULL, &function);
	return sf_vec_push(&places->functions, function);
}

/* The method MoveNext of a state machine (sf_clr_awaiter_frame). False: no memory. */
static bool describe_awaiter(struct sf_clr_places *places, const struct sf_frame *frame)
{
	struct sf_clr_method method = { .table = frame->token, .kind = SF_CLR_METHOD_IL };
	const struct sf_clr_naming naming = sf_clr_places_naming(places);
	const uint32_t type = sf_clr_type_row(&naming, frame->token, &method.module);
	struct sf_clr_module *module = type ?
		sf_clr_modules_find(&places->modules, places->description, places->memory, method.module) : NULL;
	struct function function = { 0 };
	uint32_t il;
	bool has_line;

	if (!frame->token) {
		function.function = function.linkage = sf_intern_string(places->texts, "[its awaiters are not known]");
		return sf_vec_push(&places->functions, function);
	}
	if (module)
		method.row = sf_clr_find_method(&module->metadata, type, "MoveNext");
	has_line = module && method.row && sf_clr_module_open_pdb(&places->modules, module, places->memory, places->pid) &&
		   sf_clr_pdb_await(&module->pdb, method.row, frame->id, &il);
	describe_method(places, method.row ? &method : NULL, &function); /* from here on the module is not valid */
	if (has_line)
		describe_line(places, &method, il, &function);
	return sf_vec_push(&places->functions, function);
}

/* False: no memory. */
static bool describe(struct sf_clr_places *places, const struct sf_frame *frame)
{
	struct place place = { .first = (uint32_t)places->functions.n, .kind = frame->kind };
	struct code code;
	bool done;

	if (frame->kind == SF_KIND_AWAITING) {
		done = describe_awaiter(places, frame);
	} else if (frame->kind != SF_KIND_STUB && find_code(places, frame, &code) && code.has_method) {
		done = describe_code(places, frame, &code);
		describe_kind(places, &code, &place);
		place.type = code.method.table;
	} else {
		done = describe_without_code(places, frame);
	}
	place.n = (uint32_t)places->functions.n - place.first;
	return done && sf_vec_push(&places->places, place);
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

	if (number > places->places.n && !describe(places, frame))
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

uint64_t sf_clr_places_type(const struct sf_clr_places *places, uint32_t number)
{
	return number && number <= places->places.n ? places->places.items[number - 1].type : 0;
}

size_t sf_clr_places_functions(struct sf_clr_places *places, uint32_t number, const struct sf_location **ret)
{
	const struct place *place;

	if (!number || number > places->places.n)
		return 0;
	place = &places->places.items[number - 1];
	for (uint32_t i = 0; i < place->n; i++) {
		const struct function *function = &places->functions.items[place->first + i];

		places->locations[i] = (struct sf_location){
			.function = text_of(places, function->function), .linkage = text_of(places, function->linkage),
			.file = text_of(places, function->file), .line = function->line, .inlined = i + 1 < place->n,
		};
	}
	*ret = places->locations;
	return place->n;
}
