/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the object of an asynchronous method on the stack below the frames that resumed it, and follows the
 * continuations from there (System.Private.CoreLib in dotnet/runtime: AsyncTaskMethodBuilderT.cs, Task.cs,
 * TaskContinuation.cs, AsyncMethodBuilder.cs). Fields are found by their names in the runtime's own descriptions.
 *
 * The object's type has the type of the state machine as an argument. So an object proves itself: its state machine is
 * the type of the method that runs. Where two objects fit, none is taken. A collection that moves the object changes
 * the words that point to it in the frames below, and the end of the method changes them, too. So the object counts if
 * these frames are as they were at the sample.
 */
#include "runtime/coreclr/awaiters.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/coreclr/objects.h"

#define N_ENTRIES 256u               /* a power of two */
#define MAX_STEPS 512u               /* from object to object */
#define MAX_BETWEEN 4u               /* frames of the object's type lie at most so far apart: ExecutionContext's are between */
#define SAVED_WORDS 8u               /* of registers that a method saves, below its caller's frame */
#define MAX_WORDS 512u
#define OBJECT_HEADER 8u             /* an object's fields begin behind its MethodTable; those of a struct do not */
#define NO_STATE UINT32_MAX
#define COMPLETED 0x1600000u         /* Task.cs: TASK_STATE_COMPLETED_MASK */

/* Types of objects that lead on, by a type that they are derived from, and the field that does. To add one: a line. */
static const struct link {
	const char *space, *name, *field;
	bool is_box;                 /* of an asynchronous method */
} links[] = {
	{ "", "AsyncStateMachineBox`1", "m_continuationObject", true },
	{ "System.Threading.Tasks", "Task", "m_continuationObject", false },
	{ "System.Threading.Tasks", "AwaitTaskContinuation", "m_action", false },
	{ "System.Threading.Tasks", "ContinueWithTaskContinuation", "m_task", false },
	{ "System", "Delegate", "_target", false },
	{ "", "ContinuationWrapper", "_continuation", false },
};

/*
 * A type: what its objects lead to, and by which fields. A type is known again by its module and row, since memory is
 * used again.
 */
struct entry {
	uint64_t table, module;
	uint32_t row;
	uint32_t next_at;            /* the field that leads on; 0: none */
	uint64_t machine;            /* of a box: the MethodTable of its state machine; else 0 */
	uint32_t machine_at, state_at; /* the machine in the box, and its state in the machine; 0: not known */
	uint32_t flags_at;           /* of a box: the task's state; 0: not known */
	bool machine_is_object;
};

struct sf_clr_object_types {
	struct entry entries[N_ENTRIES];
};

struct search {
	struct sf_clr_object_types *types;
	struct sf_clr_places *places;
	struct sf_clr_naming naming;
	const struct sf_trace *trace;
	uint32_t slot;
};

struct sf_clr_object_types *sf_clr_object_types_create(void)
{
	return calloc(1, sizeof(struct sf_clr_object_types));
}

void sf_clr_object_types_destroy(struct sf_clr_object_types *types)
{
	free(types);
}

static const struct link *link_of(const struct sf_clr_naming *naming, uint64_t table)
{
	const char *space, *name;

	if (!sf_clr_type_names(naming, table, &space, &name))
		return NULL;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (strcmp(name, links[i].name) == 0 && strcmp(space, links[i].space) == 0)
			return &links[i];
	}
	return NULL;
}

/* `box`: the MethodTable of AsyncStateMachineBox itself, whose last argument is the state machine. */
static void describe_box(const struct sf_clr_naming *naming, uint64_t box, struct entry *entry)
{
	uint32_t at, state_at;

	entry->machine = sf_clr_type_argument(naming, box, 1);
	if (!sf_clr_find_field(naming, box, "m_stateFlags", &entry->flags_at))
		entry->flags_at = 0;
	if (!entry->machine || !sf_clr_find_field(naming, box, "StateMachine", &at) ||
	    !sf_clr_find_field(naming, entry->machine, "<>1__state", &state_at))
		return;
	entry->machine_is_object = !sf_clr_is_value_type(naming, entry->machine);
	entry->machine_at = at;
	entry->state_at = entry->machine_is_object ? state_at : state_at - OBJECT_HEADER;
}

static void describe(const struct sf_clr_naming *naming, struct entry *entry)
{
	uint64_t table = entry->table;

	for (unsigned i = 0; table && i < SF_CLR_MAX_BASES; i++, table = sf_clr_base_type(naming, table)) {
		const struct link *link = link_of(naming, table);

		if (!link)
			continue;
		if (!sf_clr_find_field(naming, table, link->field, &entry->next_at))
			entry->next_at = 0;
		if (link->is_box)
			describe_box(naming, table, entry);
		return;
	}
}

/* NULL: it is no MethodTable. */
static const struct entry *entry_of(const struct search *search, uint64_t table)
{
	struct entry *entry = &search->types->entries[(table >> 4 ^ table >> 12) % N_ENTRIES];
	uint64_t module;
	const uint32_t row = table ? sf_clr_type_row(&search->naming, table, &module) : 0;

	if (!row)
		return NULL;
	if (entry->table != table || entry->module != module || entry->row != row) {
		*entry = (struct entry){ .table = table, .module = module, .row = row };
		describe(&search->naming, entry);
	}
	return entry;
}

/* The type of a frame's method; 0: it is not the runtime's, or it is unknown. */
static uint64_t type_of_frame(const struct search *search, uint32_t i)
{
	const struct sf_frame *frame = &search->trace->frames[i];

	return i < search->trace->n_frames && frame->runtime == search->slot + 1 ?
		sf_clr_places_type(search->places, sf_clr_places_number(search->places, frame)) : 0;
}

static bool is_box_frame(const struct search *search, uint32_t i)
{
	const struct entry *entry = entry_of(search, type_of_frame(search, i));

	return entry && entry->machine;
}

/* The frames of boxes that have resumed methods. */
struct resumed {
	uint32_t first, last;        /* of the innermost one */
	uint32_t outermost;          /* of all: a method that completes resumes the one that awaits it, above its own frames */
};

/* False: no method was resumed. */
static bool find_resumed(const struct search *search, struct resumed *ret)
{
	*ret = (struct resumed){ 0 };
	for (uint32_t i = 1; i < search->trace->n_frames; i++) {
		if (!is_box_frame(search, i))
			continue;
		ret->first = ret->first ? ret->first : i;
		if (i - ret->first <= MAX_BETWEEN)
			ret->last = i;
		ret->outermost = i;
	}
	return ret->first && ret->outermost + 1 < search->trace->n_frames;
}

static bool is_machine(const struct search *search, uint64_t machine, uint64_t type)
{
	uint64_t module, other_module;
	const uint32_t row = sf_clr_type_row(&search->naming, machine, &module);

	return row && row == sf_clr_type_row(&search->naming, type, &other_module) && module == other_module;
}

static bool is_box_of(const struct search *search, uint64_t object, uint64_t type)
{
	const struct entry *entry = entry_of(search, sf_clr_table_of(&search->naming, object));

	return entry && entry->machine && is_machine(search, entry->machine, type);
}

/* The only object of this state machine in a part of the stack. 0: there is none, or there are several. */
static uint64_t find_box(const struct search *search, const struct sf_reader *stack, uint64_t start, uint64_t end, uint64_t type)
{
	uint64_t words[MAX_WORDS], now[MAX_WORDS], found = 0;
	const size_t n = end > start ? (end - start) / sizeof(words[0]) : 0;

	if (!n || n > MAX_WORDS || !sf_read(stack, words, start, n * sizeof(words[0])) ||
	    !sf_read(search->naming.memory, now, start, n * sizeof(now[0])) || memcmp(words, now, n * sizeof(now[0])) != 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (words[i] == found || !is_box_of(search, words[i], type))
			continue;
		if (found)
			return 0;
		found = words[i];
	}
	return found;
}

/* The state of an object's machine is the number of its await. */
static uint32_t state_of(const struct search *search, const struct entry *entry, uint64_t object)
{
	uint64_t machine = object + entry->machine_at;
	uint32_t state;

	if (!entry->machine_at || (entry->machine_is_object && !sf_read_u64(search->naming.memory, machine, &machine)) ||
	    !sf_read(search->naming.memory, &state, machine + entry->state_at, sizeof(state)))
		return NO_STATE;
	return state;
}

static struct sf_frame awaiter(const struct search *search, const struct entry *entry, uint64_t object)
{
	return (struct sf_frame){
		.token = entry->machine, .id = state_of(search, entry, object), .kind = SF_KIND_AWAITING, .via = SF_VIA_AWAITS,
		.runtime = (uint8_t)(search->slot + 1), .flags = SF_FRAME_EXACT, .bci = -1,
	};
}

static bool next_of(const struct search *search, const struct entry *entry, uint64_t *object)
{
	return entry && entry->next_at && sf_read_u64(search->naming.memory, *object + entry->next_at, object) && *object;
}

/* The tasks of methods that run are not completed: where one is by now, what awaited it has been forgotten. */
static bool is_completed(const struct search *search, uint64_t box)
{
	const struct entry *entry = entry_of(search, sf_clr_table_of(&search->naming, box));
	uint32_t flags;

	return !entry || !entry->flags_at || !sf_read(search->naming.memory, &flags, box + entry->flags_at, sizeof(flags)) ||
	       flags & COMPLETED;
}

/* From the object of the method that runs outwards. */
static uint32_t follow(const struct search *search, uint64_t object, struct sf_frame *ret, uint32_t capacity)
{
	const struct entry *entry = entry_of(search, sf_clr_table_of(&search->naming, object));
	uint32_t n = 0;

	for (unsigned i = 0; i < MAX_STEPS && n < capacity && next_of(search, entry, &object); i++) {
		entry = entry_of(search, sf_clr_table_of(&search->naming, object));
		if (entry && entry->machine)
			ret[n++] = awaiter(search, entry, object);
	}
	return n;
}

/*
 * The box on the stack whose method is that of frame `i`, in the frames from its caller on and in what it saved for it.
 * 0: none.
 */
static uint64_t box_of_frame(const struct search *search, const struct sf_reader *stack, const struct resumed *resumed, uint32_t i)
{
	const struct sf_frame *frames = search->trace->frames;
	const uint64_t start = frames[i + 1].sp, type = type_of_frame(search, i);
	const uint64_t box = type ? find_box(search, stack, start, frames[resumed->last + 1].sp, type) : 0;

	return box || !type ? box : find_box(search, stack, start - SAVED_WORDS * sizeof(uint64_t), start, type);
}

/*
 * The box of the innermost method that was resumed. The box's own method may have given way to it by a tail call, so
 * that only the frame of ExecutionContext is between. 0: not found, or what awaits it cannot be told any more.
 */
static uint64_t find_innermost(const struct search *search, const struct sf_reader *stack, const struct resumed *resumed)
{
	uint64_t box = 0;

	for (uint32_t i = 1; i <= MAX_BETWEEN && i <= resumed->first && !box; i++)
		box = box_of_frame(search, stack, resumed, resumed->first - i);
	return box && !is_completed(search, box) ? box : 0;
}

uint32_t sf_clr_awaiters(struct sf_clr_object_types *types, struct sf_clr_places *places, const struct sf_still *still,
			 const struct sf_trace *trace, uint32_t slot, struct sf_frame *ret, uint32_t capacity, uint32_t *at_ret)
{
	const struct search search = { types, places, sf_clr_places_naming(places), trace, slot };
	struct resumed resumed;
	uint64_t box;

	if (!find_resumed(&search, &resumed))
		return 0;
	*at_ret = resumed.outermost + 1;
	box = sf_clr_is_still(&search.naming) ? find_innermost(&search, &still->memory, &resumed) : 0;
	if (box)
		return follow(&search, box, ret, capacity);
	*ret = (struct sf_frame){ .kind = SF_KIND_AWAITING, .via = SF_VIA_AWAITS, .runtime = (uint8_t)(slot + 1),
				  .flags = SF_FRAME_EXACT, .bci = -1 };
	return 1;
}
