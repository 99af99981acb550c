/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of glibc that Debian's libstdc++ and libgcc need and that musl does not have, so that programs of .NET
 * for musl run with them. For tests/e2e/test_dotnet_published.py, which compiles it with musl-gcc.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

char __libc_single_threaded;
int __cpu_model[4];

int __cpu_indicator_init(void) { return 0; }
int _dl_find_object(void *pc, void *ret) { (void)pc; (void)ret; return -1; }
int __pthread_key_create(pthread_key_t *key, void (*destroy)(void *)) { return pthread_key_create(key, destroy); }

size_t __strftime_l(char *ret, size_t size, const char *format, const struct tm *time, locale_t locale)
{
	return strftime_l(ret, size, format, time, locale);
}

unsigned arc4random(void)
{
	unsigned value = 0;

	getrandom(&value, sizeof(value), 0);
	return value;
}

/* Destructors of a thread's variables. */
struct destructor {
	void (*fn)(void *);
	void *arg;
	struct destructor *next;
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void run(void *list)
{
	for (struct destructor *at = list, *next; at; at = next) {
		next = at->next;
		at->fn(at->arg);
		free(at);
	}
}

static void make_key(void)
{
	pthread_key_create(&key, run);
}

int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *library)
{
	struct destructor *made = malloc(sizeof(*made));

	(void)library;
	pthread_once(&once, make_key);
	if (!made)
		return -1;
	*made = (struct destructor){ fn, arg, pthread_getspecific(key) };
	return pthread_setspecific(key, made);
}
