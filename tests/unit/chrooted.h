/* SPDX-License-Identifier: Apache-2.0 */
/* A process with another root than ours, as in a container. Only root may have one. For cmocka tests. */
#ifndef SF_TEST_CHROOTED_H
#define SF_TEST_CHROOTED_H

#include <unistd.h>

/* A child whose root is this folder. It ends when *go_ret is closed. */
static inline pid_t start_in(const char *root, int *go_ret)
{
	int go[2], ready[2];
	char byte = 0;
	pid_t pid;

	assert_true(pipe(go) == 0 && pipe(ready) == 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (chroot(root) == 0 && write(ready[1], &byte, 1) == 1)
			_exit(read(go[0], &byte, 1) != 0);
		_exit(1);
	}
	close(go[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*go_ret = go[1];
	return pid;
}

#endif
