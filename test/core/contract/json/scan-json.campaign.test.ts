// More JSON, valid and damaged.

import './scan-json.test.js';
