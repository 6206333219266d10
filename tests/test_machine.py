"""Memory that this process may use: of the machine, and of its control groups."""

from polysparse import machine


class TestAvailableBytes:
    def make(self, monkeypatch, tmp_path, files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        monkeypatch.setattr(machine, "_PROC", tmp_path / "proc")
        monkeypatch.setattr(machine, "_CGROUP", tmp_path / "cgroup")
        machine.total_bytes.cache_clear()
        self.total = machine.total_bytes()
        machine.total_bytes.cache_clear()
        return machine.available_bytes()

    def test_of_this_machine(self):
        assert 0 < machine.available_bytes() < 2**50

    def test_system(self, monkeypatch, tmp_path):
        meminfo = "MemTotal: 10 kB\nMemFree: 1 kB\nMemAvailable: 7 kB\n"
        assert self.make(monkeypatch, tmp_path, {"proc/meminfo": meminfo}) == 7 * 1024
        assert self.total == 10 * 1024

    def test_a_control_group_above_this_one_counts(self, monkeypatch, tmp_path):
        files = {
            "proc/meminfo": "MemTotal: 9999 kB\nMemAvailable: 9999 kB\n",
            "proc/self/cgroup": "0::/a/b\n",
            "cgroup/a/memory.max": "5000\n",
            "cgroup/a/memory.current": "4000\n",
            "cgroup/a/memory.stat": "anon 1\ninactive_file 300\n",
            "cgroup/a/b/memory.max": "max\n",
            "cgroup/a/b/memory.current": "10\n",
            "cgroup/a/b/memory.stat": "inactive_file 0\n",
        }
        assert self.make(monkeypatch, tmp_path, files) == 1300
        assert self.total == 5000

    def test_in_a_container_the_group_is_the_root(self, monkeypatch, tmp_path):
        files = {
            "proc/meminfo": "MemTotal: 9999 kB\nMemAvailable: 9999 kB\n",
            "proc/self/cgroup": "0::/\n",
            "cgroup/memory.max": "5000\n",
            "cgroup/memory.current": "4000\n",
            "cgroup/memory.stat": "inactive_file 0\n",
        }
        assert self.make(monkeypatch, tmp_path, files) == 1000

    def test_control_groups_of_version_one(self, monkeypatch, tmp_path):
        files = {
            "proc/meminfo": "MemTotal: 9999 kB\nMemAvailable: 9999 kB\n",
            "proc/self/cgroup": "3:cpu:/x\n2:memory:/x\n",
            "cgroup/memory/x/memory.limit_in_bytes": "900\n",
            "cgroup/memory/x/memory.usage_in_bytes": "1000\n",
            "cgroup/memory/x/memory.stat": "total_inactive_file 0\n",
        }
        assert self.make(monkeypatch, tmp_path, files) == 0
