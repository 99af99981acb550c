/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the lines of `stillframe doctor` that say what can be shown of Java in a process. */
#include "runtime/hotspot/examine.h"

#include <stdio.h>

#include "base/output.h"
#include "elf/file.h"
#include "runtime/hotspot/flags.h"
#include "runtime/hotspot/tables.h"
#include "runtime/hotspot/threads.h"

/* GraalVM's native-image puts the objects that exist from the start into a section of this name. */
#define NATIVE_IMAGE_HEAP ".svm_heap"

void sf_jvm_facts(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		  struct sf_jvm_facts *ret)
{
	struct sf_java_objects objects;
	uint64_t text;

	*ret = (struct sf_jvm_facts){
		.describes_all = sf_java_flag_was_given(hotspot, memory, "DebugNonSafepoints"),
		.attach_disabled = sf_java_flag(hotspot, memory, "DisableAttachMechanism"),
		.signals_reduced = sf_java_flag(hotspot, memory, "ReduceSignalUsage"),
		.agents_allowed = sf_java_flag(hotspot, memory, "EnableDynamicAgentLoading"),
	};
	if (sf_hotspot_get(hotspot, memory, SF_HS_RELEASE, 0, &text))
		sf_hotspot_read_string(memory, text, ret->release, sizeof(ret->release));
	sf_sanitize(ret->release);
	sf_java_objects_init(&objects, hotspot, memory);
	ret->z_without_colours = sf_java_flag(hotspot, memory, "UseZGC") == 1 && !objects.z_shift;
}

static void add(const struct sf_runtime_findings *findings, bool good, const char *text,
		const char *advice)
{
	findings->add(findings, good, text, advice);
}

static void print_release(const struct sf_runtime_findings *findings, const struct sf_jvm_finder *finder,
			  const struct sf_jvm_facts *facts)
{
	char text[200];

	snprintf(text, sizeof(text), "Java: HotSpot %s (JDK %u), whose frames are shown",
		 *facts->release ? facts->release : "of unknown build",
		 sf_jvm_hotspot(finder->jvm)->version);
	add(findings, true, text, "");
	if (*finder->note)
		add(findings, false, "Java: everything that frames tell", finder->note);
}

static void print_flags(const struct sf_runtime_findings *findings, const struct sf_jvm_facts *facts)
{
	add(findings, facts->describes_all,
	      "Java: inlined calls of the innermost frame are exact (DebugNonSafepoints)",
	      "Where a thread was interrupted, inlined calls may be missing: such frames are marked "
	      "(~). " SF_HOTSPOT_EXACT_HINT);
	add(findings, !facts->z_without_colours, "Java: threads have their full names",
	      "This ZGC moves objects behind references that cannot be told from old ones: names "
	      "may be the system's 15 bytes of them.");
	add(findings, facts->attach_disabled != 1 && facts->signals_reduced != 1,
	      "Java: its attach mechanism is not disabled",
	      "It was started with -XX:+DisableAttachMechanism or -Xrs. From outside nothing needs it; "
	      "what wants to be loaded into the running JVM does.");
	if (facts->agents_allowed == 0)
		add(findings, false, "Java: agents may be loaded while it runs",
		      "It was started with -XX:-EnableDynamicAgentLoading. From outside nothing "
		      "needs it.");
}

static bool is_native_image(const struct sf_image *image)
{
	GElf_Shdr header;
	struct sf_elf file;
	bool found;

	if (image->fd < 0 || !sf_elf_open(image->fd, &file, NULL))
		return false;
	found = sf_elf_find_section(file.elf, NATIVE_IMAGE_HEAP, &header) != NULL;
	sf_elf_close(&file);
	return found;
}

static bool has_native_image(struct sf_images *images)
{
	for (uint32_t i = 1; i <= sf_images_count(images); i++) {
		if (is_native_image(sf_images_get(images, i)))
			return true;
	}
	return false;
}

static void print_attached(const struct sf_runtime_findings *findings,
			   const struct sf_jvm_finder *finder)
{
	struct sf_jvm_facts facts;

	sf_jvm_facts(sf_jvm_hotspot(finder->jvm), sf_jvm_memory(finder->jvm), &facts);
	print_release(findings, finder, &facts);
	print_flags(findings, &facts);
}

void sf_jvm_examine(const struct sf_jvm_finder *finder, struct sf_images *images,
		    const struct sf_runtime_findings *findings)
{
	if (finder->jvm)
		print_attached(findings, finder);
	else if (finder->refused)
		add(findings, false, "Java: its frames can be shown", finder->note);
	else if (finder->image)
		add(findings, false, "Java: its virtual machine has started", finder->note);
	else if (has_native_image(images))
		add(findings, true,
	"Java compiled by GraalVM native-image: there is no virtual "
	"machine; its methods are native frames, with names and whole "
	"stacks if it was built with -g -H:+PreserveFramePointer", "");
}
