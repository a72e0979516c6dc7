// More random trees of accounts.

import './budget-account.test.js';
