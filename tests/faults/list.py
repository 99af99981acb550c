# SPDX-License-Identifier: Apache-2.0
"""Mistakes that a test must notice: (file in src/, the text there, the text with the mistake, the test).

The text occurs once in its file: `run` says which entries no longer hold. Each test is a unit test of the suites, which both forms of the
check run: what is listed here is caught by the short form already.
To add one: an entry here, and a line in tests/README.md if its promise is not there yet.
"""
FAULTS = [
    # Unwinding.
    ("frozen/unwind/step_rows.c", "known |= UINT64_C(1) << reg;\n\t}", "known |= UINT64_C(1) << reg, regs->r[reg] = values[i];\n\t}", "test_walk"),
    ("frozen/unwind/step_rows.c", "regs->known = known;", "regs->known |= known;", "test_walk"),
    ("frozen/unwind/step_rows.c", "cfa > sp ||", "cfa >= sp ||", "test_walk"),
    ("frozen/unwind/step_rows.c", "rule->size > blob_size - (uint32_t)rule->value", "rule->size > blob_size", "test_walk"),
    ("frozen/unwind/expression.c", "push(m, a + sf_bytes_uleb(&m->code))", "push(m, a + (uint64_t)sf_bytes_sleb(&m->code))", "test_expression"),
    ("frozen/unwind/expression.c", "push(m, b < 64 ? a << b : 0)", "push(m, b < 63 ? a << b : 0)", "test_expression"),
    ("frozen/unwind/expression.c", "push(m, b < 64 ? a >> b : 0)", "push(m, b < 63 ? a >> b : 0)", "test_expression"),
    ("frozen/unwind/expression.c", "push(m, a % b)", "push(m, (uint64_t)((int64_t)a % (int64_t)b))", "test_expression"),
    ("frozen/unwind/table.c", "if (is_row_of(table, i, offset))", "if (is_row_of(table, i, offset) || i < table->header->n_rows)", "test_table"),
    ("frozen/unwind/table.c", "row + 1 < table->rows + header->n_rows ?", "row + 1 <= table->rows + header->n_rows ?", "test_table"),
    # The signal engine.
    ("frozen/signal/weight.c", "ret.cpu_ns + take_run_delay(entry)", "ret.cpu_ns + 0 * take_run_delay(entry)", "test_weight"),
    ("frozen/signal/weight.c", "began_ns <= WAKE_NS;", "began_ns <= 1000 * WAKE_NS;", "test_weight"),
    ("frozen/signal/context_x86_64.c", "return pending & ~blocked;", "return pending;", "test_context"),
    ("frozen/signal/context_x86_64.c", "gregs[REG_RIP] += 2;", "", "test_context"),
    ("frozen/signal/interrupted_calls.c", "return args[4] != 0;", "return args[3] != 0;", "test_interrupted_calls"),
    ("frozen/signal/interrupted_calls.c", "!has_timeout(args[0], SO_SNDTIMEO)", "!has_timeout(args[0], SO_RCVTIMEO)", "test_interrupted_calls"),
    ("frozen/signal/interrupted_calls.c", "return args[5] != 0;", "return args[4] != 0;", "test_interrupted_calls"),
    ("frozen/signal/chain.c", "mask |= action->mask;", "", "test_chain"),
    ("frozen/signal/chain.c", "if (!(action->flags & SA_NODEFER))", "if (true)", "test_chain"),
    ("frozen/signal/slot.c", "sf_slot_word(generation, SF_SLOT_REQUESTED),\n\t\t    sf_slot_word(generation, SF_SLOT_ENTERING)",
     "look(slot),\n\t\t    sf_slot_word(generation, SF_SLOT_ENTERING)", "test_slot"),
    ("frozen/signal/serve_slots.c", "\t\t*owed |= UINT64_C(1) << i;\n", "\t\tsf_slot_wake(&handler->link.slots[i]);\n\t\t(void)owed;\n", "test_serve_slots"),
    ("frozen/signal/serve_slots.c", "while (last && n < SF_SERVED_AT_ONCE)", "while (last)", "test_serve_slots"),
    ("agent/sampler/timer_coverage.c", "return is_silent || (is_seldom && was_seldom);", "return is_silent || is_seldom || was_seldom;", "test_timer_coverage"),
    ("agent/sampler/cpu_affinity.c", "if (!CPU_EQUAL(&now, &there))", "if (!CPU_EQUAL(&now, &there) && !to)", "test_cpu_affinity"),
    ("frozen/hotspot/metadata_cache.c", "if (trust->n == SF_CACHED_METADATA)\n\t\treturn false;", "if (trust->n == SF_CACHED_METADATA)\n\t\treturn true;", "test_metadata_cache"),
    ("frozen/hotspot/metadata_cache.c", "ret->address == address && take(", "take(", "test_metadata_cache"),
    # The ptrace engine.
    ("capture/ptrace/thread.c", "thread->asleep_ns -= from_ns;\n\tthread->awake_ns += from_ns;", "(void)thread;", "test_capture_thread"),
    ("capture/ptrace/thread.c", "began_ns >= thread->looked_ns ||", "", "test_capture_thread"),
    ("capture/ptrace/watched_threads.c", "sf_relay_loss(watch->relay, thread, cause_of_rest(watch, thread), &weight)", "(void)cause_of_rest(watch, thread)", "test_watch"),
    ("capture/ptrace/unseen.c", "total_ns = process->last_cpu_ns - process->cpu_ns,", "total_ns = process->last_cpu_ns,", "test_watch"),
    ("capture/ptrace/watched_threads.c", "process->threads_cpu_ns += thread->run.cpu_ns - thread->first_cpu_ns;", "process->threads_cpu_ns += thread->run.cpu_ns;", "test_watch"),
    ("capture/ptrace/watched_processes.c", "program.started != process->program.started)\n\t\treturn false;", "false)\n\t\treturn false;", "test_watch"),
    ("capture/ptrace/unseen.c", "total_ns = watch->children_cpu_ns, seen_ns = watch->ended_cpu_ns;", "total_ns = watch->children_cpu_ns, seen_ns = 0;", "test_watch"),
    ("capture/ptrace/stack_copy.c", "before.switches == after.switches ? SF_COPY_DONE : SF_COPY_MOVED", "SF_COPY_DONE", "test_stack_copy"),
    ("capture/ptrace/stack_copy.c", "if (!sf_task_same_place(look, &again))\n\t\treturn SF_COPY_MOVED;", "", "test_stack_copy"),
    ("capture/ptrace/overhead_limit.c", "cost_ns < most_ns ? cost_ns : most_ns", "cost_ns + 0 * most_ns", "test_overhead_limit"),
    # Events.
    ("capture/perf/counting.c", "\tpass_over(thread, &weight);\n", "\tpass_over(thread, &weight);\n\tthread->over = weight;\n", "test_perf_counting"),
    ("capture/perf/counting.c", "record->time_ns < perf->events.renewed_ns ?", "record->time_ns < 0 * perf->events.renewed_ns ?", "test_perf_counting"),
    ("capture/perf/counting.c", "return record->pid == 0 ||", "return", "test_perf_counting"),
    ("capture/perf/counting.c", "counting->no_room < missing ? counting->no_room : missing", "counting->no_room", "test_perf_counting"),
    ("capture/perf/counting.c", "if (!sf_perf_send_event(perf, thread, record, &thread->over))\n\t\treturn;",
     "sf_perf_send_event(perf, thread, record, &thread->over);", "test_perf_counting"),
    ("capture/perf/pace.c", "each = lower(pace, each, allowed);", "(void)lower(pace, each, allowed);", "test_perf_counting"),
    ("capture/choice/engines.c", "if (!has_event(engine, options))", "if (!has_event(engine, options) && options->all)", "test_engines"),
    ("target/process.c", "if (process->map_is_told || is_empty(process))", "if (process->map_is_told)", "test_told_maps"),
    ("recording/profile/unseen.c", "if (!loss->cpu_ns && !loss->amount)", "if (!loss->cpu_ns)", "test_measure"),
    ("export/collapsed.c", ".is_time = filter->clock != SF_CLOCK_EVENT", ".is_time = true", "test_measure"),
    # What is recorded and shown.
    ("export/pprof.c", "(int64_t)profile->duration_ns;", "(int64_t)profile->duration_ns / 1000;", "test_export"),
    ("export/collapsed.c", "return (unsigned char)c < ' '", "return (signed char)c < ' '", "test_export"),
    ("stream/check.c", "\n\t    sample->wall_ns > MAX_NS ||", "", "test_stream"),
    ("stream/check.c", "\n\t    again->wall_ns > MAX_NS", "\n\t    false", "test_stream"),
    ("stream/check.c", "(uint64_t)label->key_size + label->value_size", "label->value_size", "test_stream"),
    ("os/linux/maps.c", "stat.st_ino == mapping->inode", "mapping->inode", "test_maps"),
    ("session/frame_numbers.c", "{ key, pid, 0 };\n\tuint32_t place", "{ key, pid * 0, 0 };\n\tuint32_t place", "test_frame_numbers"),
    ("session/stack_suffix.c", "a->bci == b->bci && ", "", "test_stack_suffix"),
    ("session/stack_suffix.c", "trace->end == SF_END_ROOT ? trace->n_frames : 0", "trace->n_frames", "test_stack_suffix"),
]
