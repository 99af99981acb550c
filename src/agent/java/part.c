/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's part for Java virtual machines: agent/runtimes.h. */
#include "agent/java/jvm_tool.h"
#include "agent/runtimes.h"

extern const struct sf_agent_runtime sf_agent_java;

const struct sf_agent_runtime sf_agent_java = { sf_jvm_tool_begin, NULL, sf_jvm_tool_end };
