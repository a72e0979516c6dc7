// More JSON, valid and damaged.

import './json-scanner.test.js';
