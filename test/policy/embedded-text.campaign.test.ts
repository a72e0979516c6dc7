// More random texts that share a passage.

import './embedded-text.test.js';
