/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a managed thread waits for: the purpose of its wait, the object, and which thread has it.
 *
 * A thread that waits is in a few methods of the class library, one inside the other: Task.Wait waits for an event,
 * which waits for a monitor's pulse. The outermost one says why, if no other code is between it and the wait.
 */
#include "runtime/coreclr/waits.h"

#include <string.h>

#define MAX_WORDS 1024u     /* between the leaf and the method's caller */
#define MAX_MEANS 4u

struct sf_clr_lock_type {
	const char *space, *name, *kind;
	const char *means[MAX_MEANS];    /* the fields one of which leads to what is on the stack, too */
	const char *owner;               /* the field with the id of the thread that has it; NULL: nobody has */
	bool is_system_id;               /* the system's id, and not the managed one */
	bool is_base;                    /* objects are of types that are derived from it */
	uint32_t n_callers;              /* the object may be in the frames of so many callers of the method; what it leads to is not */
};

/* To add one: an object, its name in waits.h, and lines in the table of purposes. */
const struct sf_clr_lock_type sf_clr_type_lock = {
	.space = "System.Threading", .name = "Lock", .kind = "lock", .means = { "_waitEvent" }, .owner = "_owningThreadId",
	.is_system_id = true,
};
const struct sf_clr_lock_type sf_clr_type_slim_lock = {
	.space = "System.Threading", .name = "ReaderWriterLockSlim", .kind = "read-write lock",
	.means = { "_writeEvent", "_readEvent", "_upgradeEvent", "_waitUpgradeEvent" }, .owner = "_writeLockOwnerId",
};
const struct sf_clr_lock_type sf_clr_type_thread = {
	.space = "System.Threading", .name = "Thread", .kind = SF_WAIT_FOR_END, .means = { "_DONT_USE_InternalThread" },
	.owner = "_managedThreadId",
};
const struct sf_clr_lock_type sf_clr_type_handle = {
	.space = "System.Threading", .name = "WaitHandle", .kind = "handle", .means = { "_waitHandle" }, .is_base = true,
	.n_callers = 2,
};

/* --- the purpose --- */

/*
 * By method, without arguments. The names are those of .NET 8, 9 and 10. To add one: a line, and a thread in
 * tests/programs/dotnet/Blocked.cs.
 */
static const struct purpose {
	const char *method, *purpose;
	const struct sf_clr_lock_type *type;    /* of the object that is waited for; NULL: which one it is does not say more */
} purposes[] = {
	{ "System.Threading.Thread.Sleep", "sleeps", NULL },
	{ "System.Threading.Thread.SleepInternal", "sleeps", NULL },
	{ "System.Threading.Thread.Join", "waits for a thread's end", &sf_clr_type_thread },
	{ "System.Threading.Monitor.Enter", "waits to enter a monitor", NULL },
	{ "System.Threading.Monitor.Enter_Slowpath", "waits to enter a monitor", NULL },
	{ "System.Threading.Monitor.TryEnter", "waits to enter a monitor", NULL },
	{ "System.Threading.Monitor.TryEnter_Slowpath", "waits to enter a monitor", NULL },
	{ "System.Threading.Monitor.Wait", "waits for a monitor's pulse", NULL },
	{ "System.Threading.Lock.TryEnterSlow", "waits for a lock", &sf_clr_type_lock },
	{ "System.Threading.ReaderWriterLockSlim.TryEnterReadLockCore", "waits for a lock, to read", &sf_clr_type_slim_lock },
	{ "System.Threading.ReaderWriterLockSlim.TryEnterUpgradeableReadLockCore", "waits for a lock, to read and perhaps write", &sf_clr_type_slim_lock },
	{ "System.Threading.ReaderWriterLockSlim.TryEnterWriteLockCore", "waits for a lock, to write", &sf_clr_type_slim_lock },
	{ "System.Threading.SemaphoreSlim.WaitUntilCountOrTimeout", "waits for a semaphore", NULL },
	{ "System.Threading.ManualResetEventSlim.Wait", "waits for an event", NULL },
	{ "System.Threading.CountdownEvent.Wait", "waits for a countdown", NULL },
	{ "System.Threading.Barrier.SignalAndWait", "waits for the others at a barrier", NULL },
	{ "System.Threading.WaitHandle.WaitOneNoCheck", "waits for a handle", &sf_clr_type_handle },
	{ "System.Threading.WaitHandle.WaitMultiple", "waits for one or all of several handles", NULL },
	{ "System.Threading.Tasks.Task.SpinThenBlockingWait", "waits for a task", NULL },
	{ "System.Threading.Tasks.Task.WaitAllBlockingCore", "waits for all of several tasks", NULL },
	{ "System.Threading.Tasks.Task.WaitAnyCore", "waits for one of several tasks", NULL },
	{ "System.Collections.Concurrent.BlockingCollection.TryTakeWithNoTimeValidation", "waits for an item of a collection", NULL },
	{ "System.Collections.Concurrent.BlockingCollection.TryAddWithNoTimeValidation", "waits for room in a collection", NULL },
	{ "System.Net.Sockets.Socket.Accept", "waits for a connection", NULL },
	{ "System.Net.Sockets.Socket.Connect", "waits to be connected", NULL },
	{ "System.Net.Sockets.Socket.Receive", "waits for data from a socket", NULL },
	{ "System.Net.Sockets.Socket.ReceiveFrom", "waits for data from a socket", NULL },
	{ "System.Net.Sockets.Socket.Send", "waits to send to a socket", NULL },
	{ "System.Net.Sockets.Socket.Poll", "waits for a socket", NULL },
	{ "System.Net.Sockets.Socket.Select", "waits for one of several sockets", NULL },
	{ "System.Net.Sockets.SocketAsyncEngine.EventLoop", "waits for events of sockets", NULL },
	{ "System.Net.NameResolutionPal.TryGetAddrInfo", "waits for the address of a name", NULL },
	{ "System.IO.Pipes.PipeStream.ReadCore", "waits for data from a pipe", NULL },
	{ "System.IO.Pipes.PipeStream.WriteCore", "waits to write to a pipe", NULL },
	{ "System.IO.Pipes.NamedPipeServerStream.WaitForConnection", "waits for a connection", NULL },
	{ "System.IO.RandomAccess.ReadAtOffset", "waits for data from a file", NULL },
	{ "System.IO.RandomAccess.WriteAtOffset", "waits to write to a file", NULL },
	{ "System.ConsolePal.Read", "waits for input", NULL },
	{ "System.Diagnostics.ProcessWaitState.WaitForExit", "waits for a process's end", NULL },
	{ "System.Threading.LowLevelLifoSemaphore.WaitForSignal", "waits for work of the pool", NULL },
	{ "System.Threading.PortableThreadPool.GateThread.GateThreadStart", "waits to look at the pool", NULL },
	{ "System.Threading.PortableThreadPool.WaitThread.WaitThreadStart", "waits for registered handles", NULL },
	{ "System.Threading.TimerQueue.TimerThread", "waits for the next timer", NULL },
};

/* The class library's and the runtime's own. A program may have types in these namespaces, too. */
static const char *const libraries[] = { "System.", "Microsoft.", "Interop.", "IL_STUB_" };

static bool is_library(const char *function)
{
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		if (strncmp(function, libraries[i], strlen(libraries[i])) == 0)
			return true;
	}
	return false;
}

/* Whether a function is this method, whatever arguments types and methods have. */
static bool is_method(const char *function, const char *method)
{
	unsigned depth = 0;

	for (; *function && (depth || *function != '('); function++) {
		depth += *function == '<';
		if (!depth && *function != *method++)
			return false;
		depth -= depth && *function == '>';
	}
	return !*method;
}

static const struct purpose *purpose_of(const char *function)
{
	for (size_t i = 0; i < sizeof(purposes) / sizeof(purposes[0]); i++) {
		if (is_method(function, purposes[i].method))
			return &purposes[i];
	}
	return NULL;
}

const char *sf_clr_purpose_of(const char *function)
{
	const struct purpose *purpose = purpose_of(function);

	return purpose ? purpose->purpose : NULL;
}

/* The functions at a place, from the inside out. False: one of them is not of the library. */
static bool is_in_library(const struct sf_location *functions, size_t n, const struct purpose **found_ret)
{
	*found_ret = NULL;
	for (size_t i = 0; i < n; i++) {
		const struct purpose *found = purpose_of(functions[i].function);

		if (!is_library(functions[i].function))
			return false;
		*found_ret = found ? found : *found_ret;
	}
	return n > 0;
}

/* The outermost method of the table, and its frame. NULL: there is none. */
static const struct purpose *find(struct sf_clr_places *places, const struct sf_trace *trace, uint32_t slot, uint32_t *at_ret)
{
	const struct sf_location *functions;
	const struct purpose *found, *outermost = NULL;
	uint32_t i = 0;

	while (i < trace->n_frames && trace->frames[i].runtime != slot + 1)
		i++;
	for (; i < trace->n_frames && trace->frames[i].runtime == slot + 1; i++) {
		const size_t n = sf_clr_places_functions(places, sf_clr_places_number(places, &trace->frames[i]), &functions);

		if (!is_in_library(functions, n, &found))
			break;
		if (!found)
			continue;
		outermost = found;
		*at_ret = i;
	}
	return outermost;
}

const char *sf_clr_purpose(struct sf_clr_places *places, const struct sf_trace *trace, uint32_t slot)
{
	uint32_t at;
	const struct purpose *purpose = find(places, trace, slot, &at);

	return purpose ? purpose->purpose : NULL;
}

const struct sf_clr_lock_type *sf_clr_waited_type(struct sf_clr_places *places, const struct sf_trace *trace, uint32_t slot,
						  uint32_t *at_ret)
{
	const struct purpose *purpose = find(places, trace, slot, at_ret);

	return purpose ? purpose->type : NULL;
}

/*
 * --- the object ---
 *
 * The object is on the stack, in the frames of the methods that wait or in what they saved of registers, since they
 * need it when the wait is over. The event or handle that carries out the wait is there, too, and a field of the object
 * leads to it. Words of calls that have returned can be there as well. So the object is the only one of its type that
 * has both; where there are several, none is taken.
 *
 * WaitHandle.WaitOne needs only the SafeWaitHandle of its object afterwards. The object may still be in a caller's
 * frame. It counts if its SafeWaitHandle is the only one in the inner frames.
 */

struct stack {
	uint64_t words[MAX_WORDS];
	size_t n, n_inner;               /* words, and those up to the frame of the method's caller */
};

/* From the leaf to this frame; 0: it cannot be read. */
static size_t words_to(const struct sf_trace *trace, uint32_t frame)
{
	const uint64_t start = trace->n_frames ? trace->frames[0].sp : 0,
		       end = frame < trace->n_frames ? trace->frames[frame].sp : 0;

	return end > start && start % 8 == 0 && (end - start) / 8 <= MAX_WORDS ? (end - start) / 8 : 0;
}

static bool read_stack(const struct sf_clr_naming *naming, const struct sf_trace *trace, uint32_t at, uint32_t n_callers,
		       struct stack *ret)
{
	ret->n_inner = words_to(trace, at + 1);
	ret->n = words_to(trace, at + 1 + n_callers);
	if (ret->n < ret->n_inner)
		ret->n = ret->n_inner;
	return ret->n_inner && sf_read(naming->memory, ret->words, trace->frames[0].sp, ret->n * sizeof(ret->words[0]));
}

static bool has(const struct stack *stack, uint64_t word)
{
	for (size_t i = 0; i < stack->n_inner; i++) {
		if (stack->words[i] == word)
			return true;
	}
	return false;
}

static bool is_of(const struct sf_clr_naming *naming, uint64_t table, const struct sf_clr_lock_type *type)
{
	for (unsigned i = 0; table && i < SF_CLR_MAX_BASES; i++, table = sf_clr_base_type(naming, table)) {
		if (sf_clr_is_type(naming, table, type->space, type->name))
			return true;
		if (!type->is_base)
			return false;
	}
	return false;
}

/* Whether the inner frames have no other object of its type. */
static bool is_only(const struct sf_clr_naming *naming, const struct stack *stack, uint64_t object)
{
	const uint64_t table = sf_clr_table_of(naming, object);

	for (size_t i = 0; i < stack->n_inner; i++) {
		if (stack->words[i] != object && sf_clr_table_of(naming, stack->words[i]) == table)
			return false;
	}
	return table;
}

/* Whether what the wait is carried out by is on the stack. */
static bool has_means(const struct sf_clr_naming *naming, const struct stack *stack, uint64_t object, uint64_t table,
		      const struct sf_clr_lock_type *type)
{
	for (size_t i = 0; i < MAX_MEANS && type->means[i]; i++) {
		uint64_t means;
		uint32_t at;

		if (sf_clr_find_field(naming, table, type->means[i], &at) && sf_read_u64(naming->memory, object + at, &means) &&
		    means && has(stack, means) && (!type->n_callers || is_only(naming, stack, means)))
			return true;
	}
	return false;
}

/* Whether the thread itself is this object: it does not wait for its own end. */
static bool is_self(const struct sf_clr_naming *naming, uint64_t object, uint64_t table, uint64_t self)
{
	uint64_t native;
	uint32_t at;

	return sf_clr_find_field(naming, table, "_DONT_USE_InternalThread", &at) &&
	       sf_read_u64(naming->memory, object + at, &native) && native == self;
}

/* 0: there is none, or there are several. */
static uint64_t find_object(const struct sf_clr_naming *naming, const struct stack *stack, uint64_t self,
			    const struct sf_clr_lock_type *type)
{
	uint64_t found = 0;

	for (size_t i = 0; i < stack->n; i++) {
		const uint64_t object = stack->words[i], table = object != found ? sf_clr_table_of(naming, object) : 0;

		if (!table || !is_of(naming, table, type) || !has_means(naming, stack, object, table, type) ||
		    is_self(naming, object, table, self))
			continue;
		if (found)
			return 0;
		found = object;
	}
	return found;
}

static bool read_id(const struct sf_clr_naming *naming, uint64_t object, const char *field, uint32_t *ret)
{
	uint32_t at;

	return sf_clr_find_field(naming, sf_clr_table_of(naming, object), field, &at) &&
	       sf_read(naming->memory, ret, object + at, sizeof(*ret)) && *ret;
}

/* The id that the managed object of a Thread has. */
static bool read_managed_id(const struct sf_clr_naming *naming, uint64_t thread, uint32_t *ret)
{
	uint64_t handle, object;

	return sf_clr_get(&naming->description->layout, naming->memory, SF_CLR_THREAD_OBJECT, thread, &handle) && handle &&
	       sf_read_u64(naming->memory, handle, &object) && read_id(naming, object, "_managedThreadId", ret);
}

/* 0: nobody has the object, or the ids are not known. */
static int32_t find_owner(const struct sf_clr_naming *naming, const struct sf_clr_threads *threads, uint64_t object,
			  const struct sf_clr_lock_type *type)
{
	uint32_t id, its;

	if (!type->owner || !read_id(naming, object, type->owner, &id))
		return 0;
	if (type->is_system_id)
		return id <= INT32_MAX && sf_clr_threads_find(threads, (int32_t)id) ? (int32_t)id : 0;
	for (size_t i = 0; i < threads->items.n; i++) {
		if (read_managed_id(naming, threads->items.items[i].thread, &its) && its == id)
			return threads->items.items[i].tid;
	}
	return 0;
}

bool sf_clr_object_wait(const struct sf_clr_naming *naming, const struct sf_clr_threads *threads, uint64_t self,
			const struct sf_clr_lock_type *type, const struct sf_trace *trace, uint32_t at, struct sf_lock_wait *ret)
{
	struct stack stack;
	uint64_t object, table;

	*ret = (struct sf_lock_wait){ 0 };
	if (!sf_clr_is_still(naming) || !read_stack(naming, trace, at, type->n_callers, &stack))
		return false;
	object = find_object(naming, &stack, self, type);
	table = sf_clr_table_of(naming, object);
	if (!table)
		return false;
	ret->kind = type->kind;
	ret->owner = find_owner(naming, threads, object, type);
	if (strcmp(type->kind, SF_WAIT_FOR_END) == 0)
		return ret->owner;
	ret->address = object;
	sf_clr_name_type(naming, table, ret->of, sizeof(ret->of));
	if (ret->of[0] == '?')
		ret->of[0] = 0;
	return true;
}
