// More random texts that share a passage.

import './passage-search.test.js';
