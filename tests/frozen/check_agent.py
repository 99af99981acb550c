#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent may not call in somebody else's process: functions of libc that take a lock for the whole process which
fork() does not give up in the child. When another thread has it in the fork, who calls one of these in the child waits for
ever. (malloc, stdio and the loader are safe: fork() takes care of theirs.)

usage: check_agent.py libstillframe-agent.so
"""
import re
import subprocess
import sys

# To add one: a word here. The first row looks for translations, in other locales than "C".
LOCKING = re.compile(r"""
    strerror(_r|_l)? | __xpg_strerror_r | strsignal | p(error|signal|siginfo) | d?c?n?gettext | getopt(_long)? | v?(err|warn)x? | error |
    (new|set|use|dup)locale | (bind_)?textdomain | localeconv | nl_langinfo | iconv(_open)? |
    (local|gm|mk|c)time(_r)? | timegm | strftime | tzset | asctime(_r)? |
    get(pw|gr|sp|host|serv|proto|net|addr)[a-z_]* | v?syslog | openlog | (s?rand(om)?|[delmn]rand48)(_r)? |
    popen | system | tmpfile | tempnam | dl(open|mopen|close|addr|_iterate_phdr) | atexit | backtrace(_symbols)?
""", re.VERBOSE)


def main():
    lines = subprocess.run(["nm", "--dynamic", "--undefined-only", "--portability", sys.argv[1]], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    wanted = {line.split()[0].split("@")[0] for line in lines}
    if "pthread_join" not in wanted:
        sys.exit(f"{sys.argv[1]} makes no threads: is this the agent?")
    locking = sorted(name for name in wanted if LOCKING.fullmatch(name))
    for name in locking:
        print(f"the agent calls {name}, which may wait for ever in a forked child")
    sys.exit(1 if locking else 0)


main()
