/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up names in child processes (symbols/lookup.h).
 *
 * A child of its own for each image: a copy of this process with the image's file, memory for its
 * answers, and limits for its time and its memory. It ignores the signals of the terminal: the parent
 * decides when to end it, and its end is the child's.
 */
#include "symbols/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/clock.h"
#include "os/rights.h"
#include "symbols/answers.h"

/*
 * 10,000 addresses in 100 MB of debug data take a second, and 30 MB of memory beside the mapped
 * file; packed debug data takes its unpacked size (sources.c). The second limit is on what a
 * child may have beside what it shares with its parent.
 */
#define MAX_CPU_NS ((uint64_t)8 * 1000000000)
#define MAX_MEMORY ((rlim_t)240 << 20)

/* Of that time, what is kept back for symbol tables. */
#define TABLES_NS ((uint64_t)2 * 1000000000)

/*
 * Limits for a child that waits, for instance for a network file system or a slow FUSE server. STALL_NS
 * limits the time without any CPU time. PATIENCE_NS limits the whole time; it is long, for busy machines.
 */
#define STALL_NS ((uint64_t)5 * 1000000000)
#define PATIENCE_NS ((uint64_t)120 * 1000000000)

#define MAX_ANSWERS ((size_t)64 << 20)
#define LOOK_MS 100 /* at whether names are still wanted */

struct sf_lookup sf_lookup_begin(const atomic_bool *stop)
{
	return (struct sf_lookup){ .cpu_left_ns = MAX_CPU_NS, .room_left = MAX_ANSWERS, .stop = stop };
}

static bool is_unwanted(const struct sf_lookup *lookup)
{
	return lookup->stop && atomic_load(lookup->stop);
}

const char *sf_lookup_note(const struct sf_lookup *lookup)
{
	if (!lookup->incomplete)
		return NULL;
	if (is_unwanted(lookup))
		return "some names are missing: looking them up was interrupted";
	return "some names are missing: reading the debug data of the images takes more time or "
	       "memory than stillframe spends on that";
}

/* The work of a child: the addresses that have no answer yet. */
struct work {
	struct sf_lookup *lookup;
	int fd;
	const char *path;
	bool debug_data;        /* else symbol tables only */
	uint64_t cpu_ns;        /* that it may take */
	struct sf_answers answers;
	SF_VEC(uint64_t) addresses;
	SF_VEC(size_t) numbers; /* of the addresses, for the caller */
};

/* Bytes of private memory now, as the kernel counts them for RLIMIT_DATA; 0: unknown. */
static rlim_t private_memory(void)
{
	SF_CLEANUP(fclose) FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (!file || fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
		return 0;
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void set_limit(__rlimit_resource_t resource, rlim_t limit)
{
	struct rlimit both = { limit, limit }, now;

	if (getrlimit(resource, &now) == 0 && now.rlim_cur < limit)
		return;
	setrlimit(resource, &both);
}

static void limit_child(const struct work *work)
{
	static const int of_terminal[] = { SIGINT, SIGQUIT, SIGHUP, SIGTERM };
	rlim_t used = private_memory();

	for (size_t i = 0; i < sizeof(of_terminal) / sizeof(*of_terminal); i++)
		signal(of_terminal[i], SIG_IGN);
	set_limit(RLIMIT_CORE, 0);
	set_limit(RLIMIT_CPU, (rlim_t)((work->cpu_ns + 999999999) / 1000000000));
	set_limit(RLIMIT_DATA, used + MAX_MEMORY);
}

/* The image becomes 3, the pipe 4, and there are no others: split_file.c needs small numbers. */
static bool arrange_files(int *image, int *alive)
{
	int high_image = fcntl(*image, F_DUPFD_CLOEXEC, 5);
	int high_alive = fcntl(*alive, F_DUPFD_CLOEXEC, 5);

	if (high_image < 0 || high_alive < 0 || dup2(high_image, 3) < 0 ||
	    dup2(high_alive, 4) < 0)
		return false;
	*image = 3;
	*alive = 4;
	return close_range(5, ~0u, 0) == 0 || errno == ENOSYS;
}

/* A file that makes no sense has no names, and that is an answer; false when memory ran out. */
static bool answer(struct work *work)
{
	struct sf_symbols *symbols;
	struct sf_error err;

	work->answers.numbers = work->numbers.items;
	if (!sf_symbols_open(work->fd, work->path, work->debug_data, &symbols, &err))
		return err.code != SF_E_NO_MEMORY;
	return sf_symbols_resolve(symbols, work->addresses.items, work->addresses.n,
				  sf_answers_put, &work->answers, NULL);
}

/* _exit: the buffers of stdio contain the parent's output. */
static _Noreturn void run_child(struct work *work, int alive_fd, pid_t parent)
{
	sf_rights_drop();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || !arrange_files(&work->fd, &alive_fd))
		_exit(1);
	limit_child(work);
	if (!answer(work))
		_exit(1);
	work->answers.memory->complete = true;
	_exit(0);
}

/* A child, and how long it may go on. */
struct child {
	pid_t pid;
	int fd;                 /* a pipe, closed when it has ended */
	uint64_t until_ns;
	uint64_t cpu_ns;        /* that it had used, */
	uint64_t moved_ns;      /* and when that was more than before */
	bool stuck;             /* it was given up */
};

static bool start_child(struct work *work, struct child *child, struct sf_error *err)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return sf_fail_os(err, "cannot create a pipe");
	child->pid = fork();
	if (child->pid == 0)
		run_child(work, ends[1], parent);
	close(ends[1]);
	if (child->pid < 0) {
		close(ends[0]);
		return sf_fail_os(err, "cannot start a process that looks up names");
	}
	child->fd = ends[0];
	return true;
}

/* Whether the child waits for a thing that does not come. */
static bool is_stuck(struct child *child)
{
	uint64_t now_ns = sf_now_ns(), cpu_ns = 0;
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(child->pid, &clock) == 0 && clock_gettime(clock, &used) == 0)
		cpu_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
	if (cpu_ns > child->cpu_ns || !child->moved_ns) {
		child->cpu_ns = cpu_ns;
		child->moved_ns = now_ns;
	}
	child->stuck = now_ns - child->moved_ns > STALL_NS || now_ns > child->until_ns;
	return child->stuck;
}

static void wait_for_end(const struct sf_lookup *lookup, struct child *child)
{
	struct pollfd wait = { .fd = child->fd, .events = POLLIN };

	while (!is_unwanted(lookup) && !is_stuck(child)) {
		if (poll(&wait, 1, LOOK_MS) > 0)
			return;
	}
}

/* Returns the CPU time of the child, which may have ended already. */
static uint64_t end_child(const struct child *child)
{
	struct rusage usage = { 0 };
	int status;

	close(child->fd);
	kill(child->pid, SIGKILL);
	while (wait4(child->pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

/* Runs one child to its end. False only when none can be started. */
static bool run(struct work *work, struct sf_error *err)
{
	struct sf_lookup *lookup = work->lookup;
	struct child child = { .until_ns = sf_now_ns() + PATIENCE_NS };
	uint64_t used_ns;

	if (!start_child(work, &child, err))
		return false;
	wait_for_end(lookup, &child);
	used_ns = end_child(&child);
	if (child.stuck) /* the next child would wait for the same thing */
		used_ns = lookup->cpu_left_ns;
	lookup->cpu_left_ns -= used_ns < lookup->cpu_left_ns ? used_ns : lookup->cpu_left_ns;
	return true;
}

/* The addresses without an answer become the work. */
static bool collect(struct work *work, const uint64_t *addresses)
{
	work->addresses.n = work->numbers.n = 0;
	for (size_t i = 0; i < work->answers.n; i++) {
		if (!work->answers.memory->of[i] &&
		    (!sf_vec_push(&work->addresses, addresses[i]) ||
		     !sf_vec_push(&work->numbers, i)))
			return false;
	}
	return true;
}

/* With debug data, or without; nothing happens where no time is left for it. */
static bool try(struct work *work, bool debug_data, const uint64_t *addresses,
		struct sf_error *err)
{
	struct sf_lookup *lookup = work->lookup;
	uint64_t kept_ns = debug_data ? TABLES_NS : 0;

	if (lookup->cpu_left_ns <= kept_ns || is_unwanted(lookup))
		return true;
	if (!collect(work, addresses))
		return sf_fail_memory(err);
	work->debug_data = debug_data;
	work->cpu_ns = lookup->cpu_left_ns - kept_ns;
	return run(work, err);
}

bool sf_lookup_resolve(struct sf_lookup *lookup, int fd, const char *path, const uint64_t *addresses,
		       size_t n, sf_location_fn *fn, void *arg, struct sf_error *err)
{
	struct work work = { .lookup = lookup, .fd = fd, .path = path };
	size_t used;
	bool done;

	if (!n)
		return true;
	if (!sf_answers_open(&work.answers, n, lookup->room_left)) {
		lookup->incomplete = true;
		return sf_fail_memory(err);
	}
	done = try(&work, true, addresses, err);
	if (done && !work.answers.memory->complete) {
		lookup->incomplete = true;
		done = try(&work, false, addresses, err);
	}
	lookup->incomplete |= !sf_answers_report(&work.answers, fn, arg);
	used = work.answers.memory->used;
	lookup->room_left -= used < lookup->room_left ? used : lookup->room_left;
	sf_answers_close(&work.answers);
	sf_vec_deinit(&work.addresses);
	sf_vec_deinit(&work.numbers);
	return done;
}
