/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, limits and ends the child processes that look up names, and reads their answers (symbols/lookup_child.h). */
#include "symbols/lookup_child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/rights.h"
#include "symbols/kept_names.h"
#include "symbols/perf_map.h"

/* --- memory for answers, which the parent reads as hostile input --- */

struct sf_answer {
	size_t n;
	struct sf_location locations[];
};

bool sf_answers_open(struct sf_answers *ret, size_t n, size_t size)
{
	void *memory = MAP_FAILED;

	*ret = (struct sf_answers){ .size = size, .n = n };
	if (size > sizeof(*ret->memory) && n < (size - sizeof(*ret->memory)) / sizeof(*ret->memory->of))
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	ret->memory = memory;
	ret->memory->used = sizeof(*ret->memory) + n * sizeof(*ret->memory->of);
	return true;
}

void sf_answers_close(struct sf_answers *answers)
{
	munmap(answers->memory, answers->size);
}

/* How much memory of the answers lies behind the pointer; 0: it points elsewhere. */
static size_t room_behind(const struct sf_answers *answers, const void *pointer)
{
	const uintptr_t at = (uintptr_t)pointer - (uintptr_t)answers->memory;

	return at < answers->size ? answers->size - at : 0;
}

static bool is_whole(const struct sf_answers *answers, struct sf_answer *answer)
{
	const size_t room = room_behind(answers, answer);

	if ((uintptr_t)answer % _Alignof(struct sf_answer) || room < sizeof(*answer) ||
	    answer->n == 0 || answer->n > (room - sizeof(*answer)) / sizeof(answer->locations[0]))
		return false;
	for (size_t i = 0; i < answer->n; i++) {
		struct sf_location *location = &answer->locations[i];

		memset(&location->inlined, *(uint8_t *)&location->inlined & 1, 1);
		if (!room_behind(answers, location->function) || !*location->function ||
		    !room_behind(answers, location->linkage) ||
		    !room_behind(answers, location->file))
			return false;
	}
	return true;
}

bool sf_answers_report(const struct sf_answers *answers, sf_location_fn *fn, void *arg)
{
	bool all = true;

	((char *)answers->memory)[answers->size - 1] = 0; /* so that every text ends */
	for (size_t i = 0; i < answers->n; i++) {
		struct sf_answer *answer = answers->memory->of[i];
		const bool whole = answer && is_whole(answers, answer);

		if (whole)
			fn(i, answer->locations, answer->n, arg);
		all &= !answer || whole;
	}
	return all;
}

/* --- answers, in the child --- */

static void *allocate(struct sf_answers *answers, size_t size)
{
	const size_t at = (answers->memory->used + 7) & ~(size_t)7;

	if (at >= answers->size || size >= answers->size - at)
		_exit(1);
	answers->memory->used = at + size;
	return (char *)answers->memory + at;
}

/* Texts are interned where they come from: equal ones have one address. */
static const char *copy_text(struct sf_answers *answers, const char *text)
{
	const uintptr_t address = (uintptr_t)text;
	const size_t size = strlen(text) + 1;
	uint32_t number = 0;
	bool is_new;

	if (answers->texts || (answers->texts = sf_intern_create()))
		number = sf_intern_add(answers->texts, &address, sizeof(address), &is_new);
	if (!number || (is_new && !sf_vec_push(&answers->copies,
					       memcpy(allocate(answers, size), text, size))))
		_exit(1);
	return answers->copies.items[number - 1];
}

/* A sf_location_fn with `arg`, the answers. Ends the process where memory is short. */
static void put_answer(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct sf_answers *answers = arg;
	struct sf_answer *answer = allocate(answers, sizeof(*answer) + n * sizeof(*locations));

	answer->n = n;
	for (size_t i = 0; i < n; i++) {
		answer->locations[i] = locations[i];
		answer->locations[i].function = copy_text(answers, locations[i].function);
		answer->locations[i].linkage = copy_text(answers, locations[i].linkage);
		answer->locations[i].file = copy_text(answers, locations[i].file);
	}
	/* The parent may end this process at any time: the answer is written before its pointer. */
	atomic_store_explicit(&answers->memory->of[answers->numbers[index]], answer,
			      memory_order_release);
}

/* --- the child --- */

/*
 * On what a child may have beside what it shares with its parent. 10,000 addresses in 100 MB of debug data take 30 MB
 * beside the mapped file; packed debug data takes its unpacked size (sources.c).
 */
#define MAX_MEMORY ((rlim_t)240 << 20)

/*
 * Limits for a child that waits, for instance for a network file system or a slow FUSE server. STALL_NS
 * limits the time without any CPU time. PATIENCE_NS limits the whole time; it is long, for busy machines.
 */
#define STALL_NS ((uint64_t)5 * 1000000000)
#define PATIENCE_NS ((uint64_t)120 * 1000000000)

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

static void limit_child(const struct sf_lookup_work *work)
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

/* The addresses of which no answer is kept, and the answers that come. */
struct unkept {
	const struct sf_lookup_work *work;
	const struct sf_symbols *symbols;
	struct sf_kept_names kept;
	SF_VEC(uint64_t) addresses;
	SF_VEC(size_t) numbers;      /* of these among the work's */
};

static void put_and_keep(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct unkept *unkept = arg;

	put_answer(unkept->numbers.items[index], locations, n, unkept->work->answers);
	if (!sf_symbols_depends_on_more(unkept->symbols))
		sf_kept_names_add(&unkept->kept, unkept->addresses.items[index], locations, n);
}

/* Puts the answers that are kept, and collects the other addresses. False: no memory. */
static bool put_kept(struct unkept *unkept)
{
	const struct sf_lookup_work *work = unkept->work;

	for (size_t i = 0; i < work->n; i++) {
		size_t n;
		const struct sf_location *locations = sf_kept_names_find(&unkept->kept, work->addresses[i], &n);

		if (locations)
			put_answer(i, locations, n, work->answers);
		else if (!sf_vec_push(&unkept->addresses, work->addresses[i]) || !sf_vec_push(&unkept->numbers, i))
			return false;
	}
	return true;
}

/* The process ends behind that: it gives no memory back. */
static bool answer_by_kept(const struct sf_lookup_work *work, struct sf_symbols *symbols, const uint8_t digest[SF_DIGEST_SIZE])
{
	struct unkept unkept = { .work = work, .symbols = symbols };

	sf_kept_names_open(digest, &unkept.kept);
	if (!put_kept(&unkept) ||
	    !sf_symbols_resolve(symbols, unkept.addresses.items, unkept.addresses.n, put_and_keep, &unkept, NULL))
		return false;
	sf_kept_names_write(&unkept.kept);
	return true;
}

/* A file that makes no sense has no names, and that is an answer; false when memory ran out. */
static bool answer(const struct sf_lookup_work *work)
{
	uint8_t digest[SF_DIGEST_SIZE];
	struct sf_symbols *symbols;
	struct sf_error err;

	if (work->is_perf_map)
		return sf_perf_map_resolve(work->fd, work->addresses, work->n, put_answer, work->answers);
	if (!sf_symbols_open(work->fd, work->path, work->debug_data, &symbols, &err))
		return err.code != SF_E_NO_MEMORY;
	if (work->debug_data && sf_symbols_digest(symbols, digest))
		return answer_by_kept(work, symbols, digest);
	return sf_symbols_resolve(symbols, work->addresses, work->n, put_answer, work->answers, NULL);
}

/* _exit: the buffers of stdio contain the parent's output. */
static _Noreturn void run_child(struct sf_lookup_work *work, int alive_fd, pid_t parent)
{
	sf_rights_drop();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || !arrange_files(&work->fd, &alive_fd))
		_exit(1);
	limit_child(work);
	if (!answer(work))
		_exit(1);
	work->answers->memory->complete = true;
	_exit(0);
}

/*
 * It begins on this thread's CPU, since this thread waits for it next. The kernel would put it on any CPU, and a thread of the
 * program that is watched would wait there for half a millisecond. From then on it runs wherever there is room.
 */
static pid_t fork_here(void)
{
	pid_t pid;

	sf_cpu_move(sched_getcpu());
	pid = fork();
	sf_cpu_move(-1);
	return pid;
}

bool sf_lookup_child_start(struct sf_lookup_work *work, struct sf_lookup_child *ret, struct sf_error *err)
{
	const pid_t parent = getpid();
	int ends[2];

	*ret = (struct sf_lookup_child){ .until_ns = sf_now_ns() + PATIENCE_NS };
	if (pipe2(ends, O_CLOEXEC) != 0)
		return sf_fail_os(err, "cannot create a pipe");
	ret->pid = fork_here();
	if (ret->pid == 0)
		run_child(work, ends[1], parent);
	close(ends[1]);
	if (ret->pid < 0) {
		ret->pid = 0;
		close(ends[0]);
		return sf_fail_os(err, "cannot start a process that looks up names");
	}
	ret->fd = ends[0];
	return true;
}

bool sf_lookup_child_look(struct sf_lookup_child *child)
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
	return !child->stuck;
}

uint64_t sf_lookup_child_end(struct sf_lookup_child *child)
{
	struct rusage usage = { 0 };
	int status;

	close(child->fd);
	kill(child->pid, SIGKILL);
	while (wait4(child->pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	child->pid = 0;
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}
