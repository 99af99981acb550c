#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a C++ program with at least 100 MB of debug data: one heavy source, compiled again and
again in another namespace. A few minutes on two cores.

    make_big_debug.py OUTPUT [--units 30] [--jobs 2]
"""
import argparse
import concurrent.futures
import os
import subprocess
import tempfile

SOURCE = r"""
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
namespace NS {
template <int N> struct Item {
	std::string name; std::vector<double> values; std::map<int, std::string> notes;
	double sum() const { double s = 0; for (double v : values) s += v * N; return s; }
	bool operator<(const Item &other) const { return sum() < other.sum(); }
};
template <int N> double work(int n) {
	std::vector<Item<N>> items;
	std::unordered_map<std::string, std::shared_ptr<Item<N>>> index;
	std::mt19937 random(n);
	for (int i = 0; i < n; i++) {
		Item<N> item{std::to_string(i), {1.0 * i, 2.0 * N}, {{i, "note"}}};
		items.push_back(item);
		index[item.name] = std::make_shared<Item<N>>(item);
	}
	std::sort(items.begin(), items.end());
	std::stable_sort(items.begin(), items.end(), [](const auto &a, const auto &b) {
		return a.notes.size() < b.notes.size(); });
	std::function<double(int)> f = [&](int k) { return items[k % items.size()].sum(); };
	std::variant<int, double, std::string> any = f(n);
	std::set<std::pair<int, std::string>> seen;
	for (auto &[key, value] : index) seen.emplace(random() % 7, key + value->name);
	std::ostringstream out;
	for (auto &entry : seen) out << entry.first << entry.second;
	std::smatch match; std::string text = out.str();
	std::regex_search(text, match, std::regex("([0-9]+)note"));
	return std::visit([&](auto &v) -> double { return sizeof(v) + text.size(); }, any);
}
double all(int n) {
	return work<1>(n) + work<2>(n) + work<3>(n) + work<4>(n) + work<5>(n) + work<6>(n);
}
}
"""


def compile_unit(folder, number):
    subprocess.run(["g++", "-std=c++17", "-g", "-O2", f"-DNS=unit{number}", "-c",
                    f"{folder}/unit.cc", "-o", f"{folder}/unit{number}.o"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("--units", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/unit.cc", "w", encoding="utf-8") as file:
            file.write(SOURCE)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(lambda n: compile_unit(folder, n), range(args.units)))
        with open(f"{folder}/main.cc", "w", encoding="utf-8") as file:
            for n in range(args.units):
                file.write(f"namespace unit{n} {{ double all(int); }}\n")
            calls = " + ".join(f"unit{n}::all(n)" for n in range(args.units))
            file.write(f"int main(int n, char **) {{ return (int)({calls}); }}\n")
        objects = [f"{folder}/unit{n}.o" for n in range(args.units)]
        subprocess.run(["g++", "-g", f"{folder}/main.cc", *objects, "-o", args.output], check=True)
    print(args.output, os.path.getsize(args.output) >> 20, "MB")


if __name__ == "__main__":
    main()
