/* SPDX-License-Identifier: MIT */
/* Intrusive doubly linked lists. A node is in at most one list; an idle node points to
 * itself, so removing it twice is harmless. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
  struct list *next, *prev;
};

#define container_of(ptr, type, member)                                                     \
  ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

static inline void
list_init(struct list *l)
{
  l->next = l->prev = l;
}

static inline bool
list_empty(const struct list *l)
{
  return l->next == l;
}

static inline void
list_insert(struct list *where, struct list *node) /* after `where` */
{
  node->next = where->next;
  node->prev = where;
  where->next->prev = node;
  where->next = node;
}

static inline void
list_append(struct list *head, struct list *node)
{
  list_insert(head->prev, node);
}

static inline void
list_remove(struct list *node)
{
  node->next->prev = node->prev;
  node->prev->next = node->next;
  list_init(node);
}

/* Takes the first node off; NULL when empty. */
static inline struct list *
list_shift(struct list *head)
{
  struct list *n = head->next;

  if (n == head)
    return NULL;
  list_remove(n);
  return n;
}

/* Moves all nodes of `from` to the end of `to`. */
static inline void
list_splice(struct list *to, struct list *from)
{
  if (list_empty(from))
    return;
  from->next->prev = to->prev;
  to->prev->next = from->next;
  from->prev->next = to;
  to->prev = from->prev;
  list_init(from);
}

#define list_for_each(node, head)                                                           \
  for ((node) = (head)->next; (node) != (head); (node) = (node)->next)

/* The body may remove `node`. */
#define list_for_each_safe(node, tmp, head)                                                 \
  for ((node) = (head)->next, (tmp) = (node)->next; (node) != (head);                       \
       (node) = (tmp), (tmp) = (node)->next)

#endif
