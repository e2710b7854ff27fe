# The same names as ./dev's commands; ARGS="..." passes arguments on.
.PHONY: demo test soak lint bench lock alerts audit venv
demo test soak lint bench lock alerts audit venv:
	@./dev $@ $(ARGS)
