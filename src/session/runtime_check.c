/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to the runtimes of a process for once, to say what can be shown of them. */
#include "session/runtime_check.h"

#include "session/loader.h"
#include "session/process_runtimes.h"

bool sf_runtime_check(int32_t pid, const struct sf_runtime_findings *findings, struct sf_error *err)
{
	struct sf_images *images = sf_images_create(&sf_session_loader);
	struct sf_process process;
	struct sf_process_runtimes runtimes = { 0 };
	bool fine;

	if (!images)
		return sf_fail_memory(err);
	sf_process_init(&process, pid);
	fine = sf_process_refresh(&process, images, err);
	if (fine) {
		sf_process_runtimes_look(&runtimes, &process, images);
		sf_runtimes_examine(&runtimes.all, images, findings);
	}
	sf_process_runtimes_deinit(&runtimes);
	sf_process_deinit(&process);
	sf_images_destroy(images);
	return fine;
}
