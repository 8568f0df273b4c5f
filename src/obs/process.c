/* SPDX-License-Identifier: MIT */
/* Facts about this process, from /proc. Files there are small and never block. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "obs/print.h"

/* Reads a small file whole; false if it can't be read. */
static bool
file_read(const char *path, char *text, size_t cap)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n;

  if (fd < 0)
    return false;
  n = read(fd, text, cap - 1);
  (void)close(fd);
  if (n < 0)
    return false;
  text[n] = '\0';
  return true;
}

static uint64_t
count_fds(void)
{
  DIR *dir = opendir("/proc/self/fd");
  uint64_t n = 0;

  if (dir == NULL)
    return 0;
  for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
    if (entry->d_name[0] != '.')
      n++;
  (void)closedir(dir);
  return n == 0 ? 0 : n - 1; /* not the one that was just open */
}

/* The moment the kernel was started, in seconds since 1970. */
static double
boot_time(void)
{
  char text[8192];
  FILE *file = fopen("/proc/stat", "re");
  double seconds = 0;

  if (file == NULL)
    return 0;
  while (fgets(text, sizeof text, file) != NULL)
    if (strncmp(text, "btime ", 6) == 0) {
      seconds = strtod(text + 6, NULL);
      break;
    }
  (void)fclose(file);
  return seconds;
}

/* proc(5), /proc/PID/stat: 14 utime, 15 stime, 22 starttime, 23 vsize, 24 rss. */
static void
stat_facts(struct process_facts *out)
{
  char text[1024], *at;
  uint64_t fields[25] = { 0 };
  double ticks = (double)sysconf(_SC_CLK_TCK);
  unsigned i;

  /* The second field is the name in parentheses, which may hold anything. */
  if (!file_read("/proc/self/stat", text, sizeof text) || (at = strrchr(text, ')')) == NULL)
    return;
  at = at + 1 + strspn(at + 1, " ");
  at += strcspn(at, " ");
  for (i = 4; i < 25; i++)
    fields[i] = strtoull(at, &at, 10);
  out->cpu_us = (uint64_t)((double)(fields[14] + fields[15]) / ticks * 1e6);
  out->start_time = boot_time() + (double)fields[22] / ticks;
  out->virtual_bytes = fields[23];
  out->resident_bytes = fields[24] * (uint64_t)sysconf(_SC_PAGESIZE);
}

void
process_facts(struct process_facts *out)
{
  struct rlimit limit;

  memset(out, 0, sizeof *out);
  stat_facts(out);
  out->open_fds = count_fds();
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    out->max_fds = limit.rlim_cur;
}

static int
print_fact(struct egw_buf *out, const char *name, const char *kind, const char *help,
           uint64_t value)
{
  return egw_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name,
                        kind, name, (unsigned long long)value);
}

int
print_process(struct egw_buf *out)
{
  struct process_facts facts;

  process_facts(&facts);
  if (print_fact(out, "process_resident_memory_bytes", "gauge", "Resident memory size",
                 facts.resident_bytes) != 0 ||
      print_fact(out, "process_virtual_memory_bytes", "gauge", "Virtual memory size",
                 facts.virtual_bytes) != 0 ||
      print_fact(out, "process_open_fds", "gauge", "Open file descriptors",
                 facts.open_fds) != 0 ||
      print_fact(out, "process_max_fds", "gauge", "Limit of file descriptors",
                 facts.max_fds) != 0)
    return -1;
  return egw_buf_printf(out,
                        "# HELP process_cpu_seconds_total User and system time\n"
                        "# TYPE process_cpu_seconds_total counter\n"
                        "process_cpu_seconds_total %llu.%06llu\n"
                        "# HELP process_start_time_seconds Start, in seconds since 1970\n"
                        "# TYPE process_start_time_seconds gauge\n"
                        "process_start_time_seconds %.2f\n",
                        (unsigned long long)(facts.cpu_us / 1000000),
                        (unsigned long long)(facts.cpu_us % 1000000), facts.start_time);
}
