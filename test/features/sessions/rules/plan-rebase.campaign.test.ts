// More random rebases.

import './plan-rebase.test.js';
