// Each tree gets three turns.

import './watch-ledger.test.js';
