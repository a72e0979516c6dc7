// Every attack on two random ledgers.

import './tamper.test.js';
