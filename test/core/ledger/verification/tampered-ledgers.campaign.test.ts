// 40 ledgers, tampered with at every entry.

import './tampered-ledgers.test.js';
