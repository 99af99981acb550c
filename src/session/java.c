/* SPDX-License-Identifier: Apache-2.0 */
#include "session/java.h"

#include "base/output.h"
#include "os/clock.h"
#include "os/task.h"

void sf_java_deinit(struct sf_java *java)
{
	sf_jvm_finder_deinit(&java->finder);
	sf_memory_destroy(java->memory);
	sf_vec_deinit(&java->recorded);
	*java = (struct sf_java){ 0 };
}

static bool read_process(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	return sf_memory_read(reader->arg, ret, addr, size);
}

void sf_java_renew(struct sf_java *java)
{
	if (java->memory)
		sf_memory_turn(java->memory, java->memory_id, java->memory_id, sf_now_ns());
}

void sf_java_look(struct sf_java *java, struct sf_process *process, struct sf_images *images)
{
	struct sf_reader memory = { .read = read_process };

	if (!sf_jvm_finder_look(&java->finder, process, images))
		return;
	if (!java->memory)
		java->memory = sf_memory_create();
	if (!java->memory)
		return; /* the next look may find some */
	java->memory_id = sf_process_live_id(process->pid);
	sf_java_renew(java);
	memory.arg = java->memory;
	if (!sf_jvm_finder_attach(&java->finder, process, images, &memory))
		return;
	java->jvm = java->finder.jvm;
	sf_process_show_runtimes(process);
}

/* In a container the virtual machine knows its threads by other ids. */
static int32_t inner_id(struct sf_java *java, int32_t pid, int32_t tid)
{
	if (!java->has_inner_ids) {
		java->has_inner_ids = true;
		java->inner_ids = sf_task_inner_id(pid, pid) != pid;
	}
	return java->inner_ids ? sf_task_inner_id(pid, tid) : tid;
}

uint64_t sf_java_thread(struct sf_java *java, int32_t pid, int32_t tid)
{
	return sf_jvm_thread(java->jvm, inner_id(java, pid, tid));
}

bool sf_java_name(struct sf_java *java, int32_t pid, int32_t tid, char *ret, size_t size)
{
	if (!sf_jvm_thread_name(java->jvm, inner_id(java, pid, tid), ret, size))
		return false;
	sf_sanitize(ret);
	return true;
}
