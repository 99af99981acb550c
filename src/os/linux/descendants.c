/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the descendants of processes: by the kernel's lists of children, or by the parents of all processes. */
#include "os/process.h"

#include <stdlib.h>
#include <unistd.h>

#include "os/linux/proc.h"

static bool add_new(struct sf_ids *ids, int32_t id)
{
	return id <= 0 || sf_ids_have(ids, id) || sf_vec_push(&ids->ids, id);
}

/*
 * Looks at every process of the machine. Usually two rounds: children mostly stand behind their
 * parents.
 */
static bool add_by_parent(struct sf_ids *parents)
{
	struct sf_ids all = { 0 };
	bool found = true, fine = sf_process_all(&all);

	while (fine && found) {
		size_t n = parents->ids.n;

		for (size_t i = 0; i < all.ids.n && fine; i++) {
			int32_t pid = all.ids.items[i];

			if (!sf_ids_have(parents, pid) && sf_ids_have(parents, sf_process_parent(pid)))
				fine = add_new(parents, pid);
		}
		found = parents->ids.n > n;
	}
	sf_vec_deinit(&all.ids);
	return fine;
}

/* The pids in /proc/PID/task/TID/children, which are separated by blanks. */
static bool add_children_of(int32_t pid, int32_t tid, struct sf_ids *parents)
{
	char text[65536], *p = text, *end;
	bool fine = true;

	if (!sf_proc_read(pid, tid, "children", text, sizeof(text)))
		return true; /* the thread has ended */
	while (fine) {
		long child = strtol(p, &end, 10);

		if (end == p)
			break;
		fine = add_new(parents, (int32_t)child);
		p = end;
	}
	return fine;
}

static bool kernel_lists_children(void)
{
	static int answer = -1;

	if (answer < 0)
		answer = access("/proc/thread-self/children", R_OK) == 0;
	return answer;
}

bool sf_process_descendants(struct sf_ids *parents)
{
	struct sf_ids threads = { 0 };
	bool fine = true;

	if (!kernel_lists_children())
		return add_by_parent(parents);
	/* The loop also visits the ids that it adds. */
	for (size_t i = 0; fine && i < parents->ids.n; i++) {
		threads.ids.n = 0;
		sf_process_threads(parents->ids.items[i], &threads);
		for (size_t j = 0; fine && j < threads.ids.n; j++)
			fine = add_children_of(parents->ids.items[i], threads.ids.items[j],
					       parents);
	}
	sf_vec_deinit(&threads.ids);
	return fine;
}
