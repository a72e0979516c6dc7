// All sizes of the suite in this folder.

import './content-search.test.js';
