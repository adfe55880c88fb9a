// Stands for the headers that headers_alone_test.py compiles with this file's command.
