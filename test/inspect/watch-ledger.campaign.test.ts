// The trees take turns three times.

import './watch-ledger.test.js';
