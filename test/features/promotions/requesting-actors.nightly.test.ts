// All spellings of requesting-actors.test.ts.

import './requesting-actors.test.js';
