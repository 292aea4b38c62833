//! Daily work goes on inside: git, builds, servers, terminals. S-25.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use support::confined_test;

confined_test! {
    fn git_works_and_covers_are_not_committed(world) {
        world.git_init();
        let text = world.run("git add -A && git commit -qm first && echo b >> notes.txt && git status --short && git add -A && git commit -qm second && git checkout -qb side && echo c > c && git add c && git commit -qm third && git checkout -q main && git merge -q side && git stash list && git tag v1 && git gc -q && git clone -q . $TMPDIR/clone && git log --oneline | wc -l; git ls-tree -r --name-only HEAD");
        assert!(text.contains(" M notes.txt\n3\nc\nnotes.txt\n"), "{text}");
        assert!(!text.contains("warning") && !text.contains("fatal"), "{text}");
    }
}

confined_test! {
    fn servers_terminals_and_reading_the_machine_work(world) {
        let text = world.run(
            "python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & p=$!
             for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:8123/ && break; sleep 0.1; done
             echo served > s.txt; curl -s http://localhost:8123/s.txt; kill $p; wait $p
             python3 -c \"import pty; pty.spawn(['python3', '-c', 'import os; print(\\\"TTY\\\", os.isatty(1))'])\" < /dev/null
             head -1 /etc/passwd > /dev/null && ls /usr/bin > /dev/null && test -r /proc/cpuinfo && test -d /sys && id && nproc && df . > /dev/null && echo READS
             cat ~/.bashrc; for i in $(seq 100); do /bin/true; done; seq 100 | xargs -P 8 -n 1 echo | wc -l; ps | wc -l; echo x | tee /dev/stderr; echo err > /dev/stdout
             timeout 0.1 sleep 5; echo rc=$?; tty; exec 3<> /dev/shm/x; python3 -c 'import multiprocessing as m; m.Lock(); print(\"LOCK\")'"
        );
        for word in ["served", "TTY True", "READS", "# rc", "\n100\n", "x\nx\nerr\n", "rc=124", "not a tty", "LOCK"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

confined_test! {
    fn compilers_and_parallel_builds_work(world) {
        world.put("ws/main.c", "#include <stdio.h>\nint f(void);\nint main(void) { printf(\"C %d\\n\", f()); }\n");
        world.put("ws/f.c", "int f(void) { return 42; }\n");
        world.put("ws/Makefile", "prog: main.o f.o\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -c -o $@ $<\n");
        let text = world.run("make -s -j4 && ./prog");
        assert!(text.contains("C 42"), "{text}");
    }
}

confined_test! {
    fn debuggers_can_trace_the_command(world) {
        let script = "
import ctypes, os, signal
libc = ctypes.CDLL(None)
pid = os.fork()
if pid == 0: signal.pause()
print('attach', libc.ptrace(16, pid, 0, 0)); os.waitpid(pid, 0); libc.ptrace(17, pid, 0, 0); os.kill(pid, 9); os.wait()
";
        world.put("ws/p.py", script);
        assert!(world.run("python3 p.py").contains("attach 0"));
    }
}
