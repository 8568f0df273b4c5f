/* SPDX-License-Identifier: MIT */
/* The retry budget. */
#include "budget.h"

void
budget_enter(struct budget *budget)
{
  budget->active++;
}

void
budget_leave(struct budget *budget)
{
  budget->active--;
}

bool
budget_take(struct budget *budget, double share)
{
  double most = share * (double)budget->active;

  if (budget->extra >= BUDGET_LEAST && (double)budget->extra + 1 > most)
    return false;
  budget->extra++;
  return true;
}

void
budget_give(struct budget *budget)
{
  budget->extra--;
}
