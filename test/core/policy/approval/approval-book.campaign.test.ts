// A thousand random histories of approvals.

import './approval-book.test.js';
