// More random trees of accounts.

import './budget.test.js';
