package world

// What the outside has accepted and works on: the attempts that follow ask what came
// of it. They do nothing else, so they need nothing of budgets, count as none of those
// that a retry has, and go on until there is an answer.
