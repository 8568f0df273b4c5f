# SPDX-License-Identifier: MIT
# The ladder of examples: built to be tried in the tree, not installed.
example_plugins = \
	plugins/example/example1-pass.so \
	plugins/example/example2-option.so \
	plugins/example/example3-async.so \
	plugins/example/example4-subcall.so \
	plugins/example/example5-transport.so \
	plugins/example/example6-notice.so \
	$(NULL)
noinst_PROGRAMS += $(example_plugins)
plugins_example_example1_pass_so_SOURCES = plugins/example/example1-pass.c
plugins_example_example1_pass_so_CFLAGS = $(plugin_cflags)
plugins_example_example1_pass_so_LDFLAGS = $(plugin_ldflags)
plugins_example_example2_option_so_SOURCES = plugins/example/example2-option.c
plugins_example_example2_option_so_CFLAGS = $(plugin_cflags)
plugins_example_example2_option_so_LDFLAGS = $(plugin_ldflags)
plugins_example_example3_async_so_SOURCES = plugins/example/example3-async.c
plugins_example_example3_async_so_CFLAGS = $(plugin_cflags)
plugins_example_example3_async_so_LDFLAGS = $(plugin_ldflags)
plugins_example_example4_subcall_so_SOURCES = plugins/example/example4-subcall.c
plugins_example_example4_subcall_so_CFLAGS = $(plugin_cflags)
plugins_example_example4_subcall_so_LDFLAGS = $(plugin_ldflags)
plugins_example_example5_transport_so_SOURCES = plugins/example/example5-transport.c
plugins_example_example5_transport_so_CFLAGS = $(plugin_cflags)
plugins_example_example5_transport_so_LDFLAGS = $(plugin_ldflags)
plugins_example_example6_notice_so_SOURCES = plugins/example/example6-notice.c
plugins_example_example6_notice_so_CFLAGS = $(plugin_cflags)
plugins_example_example6_notice_so_LDFLAGS = $(plugin_ldflags)
