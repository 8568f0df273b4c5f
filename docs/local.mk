# SPDX-License-Identifier: MIT
# Manual pages are made from pods: docs/NAME.SECTION.pod, and ethrpc-gw-PLUGIN.pod (section 7)
# beside each plugin. A fragment adds its pod to dist_man_pods.
dist_man_pods += docs/ethrpc-gw-plugin.3.pod docs/ethrpc-gw.8.pod docs/ethrpc-gw.conf.5.pod
# Charts are there for the parts that were measured: none, or some.
EXTRA_DIST += $(wildcard $(srcdir)/docs/benchmarks/*.svg)
EXTRA_DIST += $(dist_man_pods) docs/errors.md docs/benchmarks.md \
	docs/internals/cache-tiers.md \
	docs/internals/cache.md \
	docs/internals/head.md \
	docs/internals/ownership.md \
	docs/internals/path.md \
	docs/internals/push.md \
	docs/internals/shutdown.md \
	docs/internals/testing.md \
	docs/internals/threats.md \
	docs/internals/threads.md \
	$(NULL)

if HAVE_POD2MAN
all-local: man/.stamp
install-data-local: install-man-pages
uninstall-local: uninstall-man-pages
endif

man/.stamp: $(dist_man_pods)
	@$(MKDIR_P) man
	@rm -f man/*.[1-9] $@
	$(AM_V_GEN)for pod in $(dist_man_pods); do \
	  test -f "$$pod" || pod="$(srcdir)/$$pod"; \
	  page=`basename "$$pod" .pod`; \
	  case $$page in *.[1-9]) ;; *) page=$$page.7 ;; esac; \
	  name=`echo "$$page" | $(SED) 's/\.[1-9]$$//' | tr '[:lower:]' '[:upper:]'`; \
	  $(POD2MAN) --utf8 --errors=die --section="$${page##*.}" --name="$$name" \
	    --center=ethrpc-gw --release="$(VERSION)" "$$pod" "man/$$page" || exit 1; \
	done
	@touch $@

.PHONY: install-man-pages uninstall-man-pages
install-man-pages: man/.stamp
	@for page in man/*.[1-9]; do \
	  dir="$(DESTDIR)$(mandir)/man$${page##*.}"; \
	  $(MKDIR_P) "$$dir" && $(INSTALL_DATA) "$$page" "$$dir/" || exit 1; \
	done
uninstall-man-pages:
	@for page in man/*.[1-9]; do \
	  rm -f "$(DESTDIR)$(mandir)/man$${page##*.}/$${page#man/}"; \
	done

clean-local: clean-man-pages
.PHONY: clean-man-pages
clean-man-pages:
	rm -rf man
