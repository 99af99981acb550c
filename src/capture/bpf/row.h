/* SPDX-License-Identifier: Apache-2.0 */
/* One thread, as the BPF program (threads.bpf.c) describes it. The program and stillframe include this file. */
#ifndef SF_CAPTURE_BPF_ROW_H
#define SF_CAPTURE_BPF_ROW_H

#define SF_BPF_REGS 21 /* words of struct pt_regs */

/* Ids are those of the reader's pid namespace. */
struct sf_bpf_row {
	int pid, tid;
	unsigned int state;            /* task_struct.__state */
	unsigned int on_cpu;           /* 1: it runs, and its registers are not those below */
	unsigned int queued, pad;      /* 1: it waits for a CPU, whatever its state */
	unsigned long long switches;   /* times that it was put on a CPU (struct sf_task_run) */
	unsigned long long left_before, left_after; /* times that it left one: read before all others, and behind on_cpu */
	unsigned long long regs[SF_BPF_REGS];
	char name[16];
};

#endif
