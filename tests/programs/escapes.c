/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose names are orders to a terminal: the process, a thread, a function and its source file
 * all hold ESC, C1 and a character that turns the direction of writing. Its first thread reads from the
 * FIFO that is named, the other spins.
 *
 * escapes FIFO [SECONDS]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The quotes are the assembler's. */
void spin(void) __asm__("\"sp\033[31min\"");
void *work(void *arg);

#line 1 "li\033[31mne\302\2332J\342\200\256.c"
__attribute__((noinline)) void spin(void)
{
	for (volatile long i = 0; i < 1000000; i++)
		;
}

void *work(void *arg)
{
	prctl(PR_SET_NAME, "th\033[31mread");
	for (;;)
		spin();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char byte;
	int fd;

	if (argc < 2)
		return 2;
	alarm(argc > 2 ? (unsigned)atoi(argv[2]) : 0);
	fd = open(argv[1], O_RDWR);
	prctl(PR_SET_NAME, "pr\033[31moc");
	if (fd < 0 || pthread_create(&thread, NULL, work, NULL) != 0)
		return 1;
	puts("ready");
	fflush(stdout);
	return read(fd, &byte, 1) == 1 ? 0 : 1;
}
