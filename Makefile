# The same names as ./dev's commands; ARGS="..." passes arguments on.
.PHONY: demo test soak lint bench lock audit venv
demo test soak lint bench lock audit venv:
	@./dev $@ $(ARGS)
