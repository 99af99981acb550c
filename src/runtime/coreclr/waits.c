/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that waits is in a few methods of the class library, one inside the other: Task.Wait waits for an event,
 * which waits for a monitor's pulse. The outermost one says why, if no other code is between it and the wait.
 */
#include "runtime/coreclr/waits.h"

#include <string.h>

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
