/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's word on a Java virtual machine. */
#include <stdio.h>

#include "cli/doctor.h"
#include "session/java_check.h"

static void print_release(const struct sf_output *output, const struct sf_java_check *java)
{
	char text[200];

	snprintf(text, sizeof(text), "Java: HotSpot %s (JDK %u), whose frames are shown",
		 *java->facts.release ? java->facts.release : "of unknown build", java->version);
	sf_doctor_finding(output, true, text, "");
	if (*java->note)
		sf_doctor_finding(output, false, "Java: everything that frames tell", java->note);
}

static void print_flags(const struct sf_output *output, const struct sf_jvm_facts *facts)
{
	sf_doctor_finding(output, facts->describes_all == 1,
			  "Java: inlined calls of the innermost frame are exact (DebugNonSafepoints)",
			  "Where a thread was interrupted, inlined calls may be missing: such frames are marked "
			  "(~). They are exact if Java is started with -XX:+UnlockDiagnosticVMOptions "
			  "-XX:+DebugNonSafepoints.");
	sf_doctor_finding(output, !facts->z_without_colours, "Java: threads have their full names",
			  "This ZGC moves objects behind references that cannot be told from old ones: names "
			  "may be the system's 15 bytes of them.");
	sf_doctor_finding(output, facts->attach_disabled != 1 && facts->signals_reduced != 1,
			  "Java: its attach mechanism is not disabled",
			  "It was started with -XX:+DisableAttachMechanism or -Xrs. From outside nothing needs it; "
			  "what wants to be loaded into the running JVM does.");
	if (facts->agents_allowed == 0)
		sf_doctor_finding(output, false, "Java: agents may be loaded while it runs",
				  "It was started with -XX:-EnableDynamicAgentLoading. From outside nothing "
				  "needs it.");
}

void sf_doctor_java(const struct sf_output *output, int32_t pid)
{
	struct sf_java_check java;
	struct sf_error err = { 0 };

	if (!sf_java_check(pid, &java, &err))
		return; /* the engines' lines say why */
	switch (java.kind) {
	case SF_JAVA_NONE:
		return;
	case SF_JAVA_HOTSPOT:
		print_release(output, &java);
		print_flags(output, &java.facts);
		return;
	case SF_JAVA_STARTING:
		sf_doctor_finding(output, false, "Java: its virtual machine has started",
				  java.note);
		return;
	case SF_JAVA_REFUSED:
		sf_doctor_finding(output, false, "Java: its frames can be shown", java.note);
		return;
	case SF_JAVA_NATIVE_IMAGE:
		sf_doctor_finding(output, true,
				  "Java compiled by GraalVM native-image: there is no virtual "
				  "machine; its methods are native frames, with names and whole "
				  "stacks if it was built with -g -H:+PreserveFramePointer",
				  "");
		return;
	}
}
