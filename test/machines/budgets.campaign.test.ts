// More histories of agents that share a budget.

import './budgets.test.js';
